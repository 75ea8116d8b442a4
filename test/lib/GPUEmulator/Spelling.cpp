//===- Spelling.cpp - What intrinsics and assembly mean in PTX ------------===//

#include "Retarget.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;

namespace fp8::emulator {

//===----------------------------------------------------------------------===//
// Intrinsics
//===----------------------------------------------------------------------===//

/// Spells mma.m16n8k32.row.col.f32.e4m3.e4m3.f32, and short forms with one
/// type.
static std::string spellMma(StringRef rest) {
  size_t types = rest.find(".row.col.");
  if (types == StringRef::npos)
    return "";
  StringRef shape = rest.take_front(types + StringRef(".row.col.").size());
  std::string list = rest.drop_front(shape.size()).str();
  StringRef written = list;
  std::string kind;
  if (written.consume_front("kind.f8f6f4."))
    kind = "kind::f8f6f4.";
  std::string whole = llvm::StringSwitch<std::string>(written)
                          .Case("bf16", "f32.bf16.bf16.f32")
                          .Case("tf32", "f32.tf32.tf32.f32")
                          .Case("f32.f32", "f32.f16.f16.f32")
                          .Default(written.str());
  return "mma.sync.aligned." + shape.str() + kind + whole;
}

static std::string spellRegister(StringRef rest) {
  if (rest == "warpsize")
    return "WARP_SZ";
  std::string name = rest.str();
  if (rest.starts_with("lanemask."))
    name[StringRef("lanemask").size()] = '_';
  return "%" + name;
}

Spelling spellIntrinsic(StringRef name) {
  StringRef rest = name;
  if (rest.consume_front("read.ptx.sreg."))
    return {spellRegister(rest), {}};
  if (rest.consume_front("mma."))
    return {spellMma(rest), {}};
  if (rest.consume_front("shfl.sync.")) {
    // The intrinsic has the mask first.
    bool hasPredicate = rest.consume_back("p");
    if (!rest.consume_back(".i32") && !rest.consume_back(".f32"))
      return {};
    return {"shfl.sync." + rest.str() + ".b32" + (hasPredicate ? "|p" : ""),
            {1, 2, 3, 0}};
  }
  if (rest.consume_front("vote.") && rest.consume_back(".sync"))
    return {"vote.sync." + rest.str() + (rest == "ballot" ? ".b32" : ".pred"),
            {1, 0}};
  rest = name;
  if (rest.consume_front("redux.sync.")) {
    std::string type = llvm::StringSwitch<std::string>(rest)
                           .Case("add", "add.s32")
                           .Case("min", "min.s32")
                           .Case("max", "max.s32")
                           .Case("umin", "min.u32")
                           .Case("umax", "max.u32")
                           .Cases({"and", "or", "xor"}, rest.str() + ".b32")
                           .Default("");
    return {"redux.sync." + type, {}};
  }
  if (rest.consume_front("cp.async.bulk.tensor.g2s.")) {
    rest.consume_front("cta.");
    unsigned rank;
    if (!rest.consume_front("tile.") || !rest.consume_back("d") ||
        rest.getAsInteger(10, rank))
      return {};
    // Drop the multicast mask and the cache hint.
    Spelling copy = {"cp.async.bulk.tensor." + rest.str() +
                         "d.shared.global.tile.mbarrier::complete_tx::bytes",
                     {}};
    for (unsigned i = 0; i < 3 + rank; ++i)
      copy.order.push_back(i);
    return copy;
  }
  // The suffix .p3 is the address space.
  if (rest.starts_with("ldmatrix.") || rest.starts_with("stmatrix.")) {
    rest.consume_back(".p3");
    return {rest.str(), {}};
  }
  for (StringRef format : {"e4m3x2", "e5m2x2"}) {
    std::string f8 = format.str();
    if (rest == "ff.to." + f8 + ".rn")
      return {"cvt.rn.satfinite." + f8 + ".f32", {}};
    if (rest == "ff.to." + f8 + ".rn.relu")
      return {"cvt.rn.satfinite.relu." + f8 + ".f32", {}};
    if (rest == "f16x2.to." + f8 + ".rn")
      return {"cvt.rn.satfinite." + f8 + ".f16x2", {}};
    if (rest == f8 + ".to.f16x2.rn")
      return {"cvt.rn.f16x2." + f8, {}};
  }
  std::string spelled =
      llvm::StringSwitch<std::string>(rest)
          .Case("cp.async.commit.group", "cp.async.commit_group")
          .Case("cp.async.wait.group", "cp.async.wait_group")
          .Case("cp.async.wait.all", "cp.async.wait_all")
          .Case("mbarrier.init.shared", "mbarrier.init.shared.b64")
          .Case("mbarrier.inval.shared", "mbarrier.inval.shared.b64")
          .Case("mbarrier.arrive.scope.cta.space.cta",
                "mbarrier.arrive.shared.b64")
          .Case("mbarrier.expect.tx.scope.cta.space.cta",
                "mbarrier.expect_tx.shared.b64")
          .Case("mbarrier.arrive.expect.tx.scope.cta.space.cta",
                "mbarrier.arrive.expect_tx.shared.b64")
          .Case("mbarrier.try.wait.parity.scope.cta.space.cta",
                "mbarrier.try_wait.parity.shared.b64")
          .Case("fence.proxy.async.shared_cta", "fence.proxy.async.shared")
          .Case("ff2bf16x2.rn", "cvt.rn.bf16x2.f32")
          .Case("ff2f16x2.rn", "cvt.rn.f16x2.f32")
          .Case("f2bf16.rn", "cvt.rn.bf16.f32")
          .Case("f2f16.rn", "cvt.rn.f16.f32")
          .Case("f2tf32.rna", "cvt.rna.tf32.f32")
          .Cases({"ex2.approx.f", "ex2.approx.f32"}, "ex2.approx.f32")
          .Cases({"ex2.approx.ftz.f", "ex2.approx.ftz.f32"},
                 "ex2.approx.ftz.f32")
          .Case("lg2.approx.f", "lg2.approx.f32")
          .Case("lg2.approx.ftz.f", "lg2.approx.ftz.f32")
          .Case("rcp.approx.ftz.f", "rcp.approx.ftz.f32")
          .Case("rsqrt.approx.f", "rsqrt.approx.f32")
          .Case("rsqrt.approx.ftz.f", "rsqrt.approx.ftz.f32")
          .Cases({"sqrt.rn.f", "sqrt.f"}, "sqrt.rn.f32")
          .Case("sqrt.approx.f", "sqrt.approx.f32")
          .Case("rcp.rn.f", "rcp.rn.f32")
          .Case("div.rn.f", "div.rn.f32")
          .Case("div.full", "div.full.f32")
          .Case("add.rn.f", "add.rn.f32")
          .Case("mul.rn.f", "mul.rn.f32")
          .Case("fma.rn.f", "fma.rn.f32")
          .Case("fmax.f", "max.f32")
          .Case("fmin.f", "min.f32")
          .Case("fmax.nan.f", "max.NaN.f32")
          .Case("fmin.nan.f", "min.NaN.f32")
          .Case("fabs.f32", "abs.f32")
          .Case("prefetch.tensormap.p0", "prefetch.tensormap")
          .Case("prmt", "prmt.b32")
          .Default(rest.str());
  return {spelled, {}};
}

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

/// Returns true if the instruction writes its first operand.
static bool hasTarget(StringRef opcode) {
  for (StringRef start : {"bar", "cp.async", "stmatrix", "membar", "fence",
                          "wgmma.fence", "wgmma.commit", "wgmma.wait"})
    if (opcode.starts_with(start))
      return false;
  return true;
}

/// Returns true for wgmma, which also reads its first operand.
static bool isWgmma(StringRef opcode) {
  return opcode.starts_with("wgmma.mma_async");
}

/// Removes modifiers that do not affect the result.
static std::string withoutHints(StringRef opcode) {
  llvm::SmallVector<StringRef> parts, kept;
  opcode.split(parts, '.');
  for (StringRef part : parts)
    if (!part.starts_with("L2::"))
      kept.push_back(part == "shared::cta" ? StringRef("shared") : part);
  return llvm::join(kept, ".");
}

namespace {
/// The opcode and operands of a PTX instruction. An operand in braces is a
/// list.
struct Tokens {
  std::string opcode;
  std::vector<std::vector<std::string>> operands;
};
} // namespace

/// Parses the predicate of wgmma, which inline assembly makes in braces from an
/// operand, as it cannot pass predicates. Returns that operand and reduces
/// `body` to the instruction. Returns "" if there is none.
static StringRef takePredicate(StringRef &body) {
  StringRef inside = body;
  if (!inside.consume_front("{") || !inside.consume_back("}"))
    return "";
  inside = inside.trim();
  if (!inside.consume_front(".reg .pred p;"))
    return "";
  inside = inside.ltrim();
  if (!inside.consume_front("setp.ne.b32 p, "))
    return "";
  auto [operand, rest] = inside.split(',');
  rest = rest.ltrim();
  if (!rest.consume_front("0;"))
    return "";
  body = rest.trim();
  return operand;
}

static llvm::Expected<Tokens> split(StringRef text) {
  auto invalid = [&] {
    return llvm::createStringError("the emulator reads one PTX instruction an "
                                   "inline assembly, but got '" +
                                   text.trim() + "'");
  };
  StringRef body = text.trim();
  StringRef predicate = takePredicate(body);
  body.consume_back(";");
  if (body.contains(';') || body.starts_with("@") || body.starts_with("{"))
    return invalid();
  Tokens tokens;
  auto [opcode, rest] = body.split(' ');
  if (opcode.contains('\t') || opcode.contains('\n'))
    return invalid();
  tokens.opcode = opcode.str();
  bool inBraces = false;
  std::vector<std::string> list;
  std::string word;
  auto endWord = [&] {
    if (!StringRef(word).trim().empty())
      list.push_back(!predicate.empty() && StringRef(word).trim() == "p"
                         ? predicate.str()
                         : StringRef(word).trim().str());
    word.clear();
  };
  for (char c : rest) {
    if (c == '{' || c == '}') {
      inBraces = c == '{';
    } else if (c == ',' || c == '|') {
      endWord();
      // `d|p` is one operand with two registers.
      if (!inBraces && c == ',') {
        tokens.operands.push_back(list);
        list.clear();
      }
      if (c == '|')
        tokens.opcode += "|p";
    } else if (c != '[' && c != ']') {
      word += c;
    }
  }
  endWord();
  if (!list.empty())
    tokens.operands.push_back(list);
  return tokens;
}

/// Brings an opcode into the form that findInstruction expects. It then
/// includes what PTX expresses by operands, such as the bytes of a cp.async.
static void canonicalize(Tokens &tokens) {
  StringRef opcode = tokens.opcode;
  std::string rest;
  for (StringRef start : {"bar.cta.", "bar.", "barrier.cta.", "barrier."}) {
    if (!opcode.starts_with(start) || opcode == "bar.warp.sync")
      continue;
    std::string kind = opcode.drop_front(start.size()).str();
    // bar means barrier.aligned.
    if (start.starts_with("bar."))
      kind += ".aligned";
    tokens.opcode = "barrier.cta." + kind +
                    (tokens.operands.size() > 1 ? ".count" : ".all");
    return;
  }
  tokens.opcode = withoutHints(opcode);
  // A is in registers.
  if (isWgmma(tokens.opcode) && tokens.operands.size() > 1 &&
      tokens.operands[1].size() > 1)
    tokens.opcode += ".ra";
  opcode = tokens.opcode;
  if ((opcode == "cp.async.ca.shared.global" ||
       opcode == "cp.async.cg.shared.global") &&
      tokens.operands.size() >= 3 && tokens.operands[2].size() == 1) {
    tokens.opcode += "." + tokens.operands[2][0];
    tokens.operands.erase(tokens.operands.begin() + 2);
    if (tokens.operands.size() == 3)
      tokens.opcode += ".s";
  }
}

llvm::Expected<Assembly> parseAssembly(StringRef text, StringRef constraints) {
  auto tokens = split(text);
  if (!tokens)
    return tokens.takeError();
  canonicalize(*tokens);
  llvm::SmallVector<StringRef> list;
  constraints.split(list, ',', -1, false);
  unsigned outputs = 0;
  while (outputs < list.size() && list[outputs].starts_with("="))
    ++outputs;
  // For each output that is also read, the number of the tied input.
  std::vector<int> tied(outputs, -1);
  for (unsigned i = outputs; i < list.size(); ++i) {
    unsigned output;
    if (!list[i].getAsInteger(10, output) && output < outputs)
      tied[output] = i - outputs;
  }
  Assembly assembly;
  assembly.opcode = tokens->opcode;
  bool isTarget = hasTarget(assembly.opcode);
  if (isWgmma(assembly.opcode))
    for (unsigned output = 0; output < outputs; ++output) {
      if (tied[output] < 0)
        return llvm::createStringError("expected the accumulators to be inputs "
                                       "and outputs in '" +
                                       text.trim() + "'");
      assembly.operands.push_back(
          {AssemblyOperand::Input, static_cast<unsigned>(tied[output]), 0});
    }
  for (const std::vector<std::string> &operand : tokens->operands) {
    for (StringRef word : operand) {
      AssemblyOperand read = {AssemblyOperand::Literal, 0, 0};
      StringRef digits = word;
      if (digits.consume_front("$")) {
        if (digits.getAsInteger(10, read.number))
          return llvm::createStringError("the emulator does not read '" + word +
                                         "' in '" + text.trim() + "'");
        if (read.number >= outputs) {
          read.kind = AssemblyOperand::Input;
          read.number -= outputs;
        } else if (isTarget) {
          read.kind = AssemblyOperand::Output;
        } else if (tied[read.number] >= 0) {
          read.kind = AssemblyOperand::Input;
          read.number = tied[read.number];
        } else {
          return llvm::createStringError("'" + text.trim() + "' reads '" +
                                         word + "', which is an output");
        }
      } else if (int64_t negative;
                 digits.starts_with("-") && !digits.getAsInteger(0, negative)) {
        read.literal = static_cast<uint64_t>(negative);
      } else if (digits.getAsInteger(0, read.literal)) {
        return llvm::createStringError("the emulator does not read '" + word +
                                       "' in '" + text.trim() + "'");
      }
      (isTarget ? assembly.results : assembly.operands).push_back(read);
    }
    isTarget = false;
  }
  return assembly;
}

} // namespace fp8::emulator
