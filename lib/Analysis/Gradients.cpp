//===- Gradients.cpp - Matching of gradients and tensors ------------------===//

#include "Gradients.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Rows.h"

#include "llvm/ADT/Hashing.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the dimension that a slice cuts, if it is the only one.
static std::optional<unsigned> cutDimension(stablehlo::SliceOp slice) {
  std::optional<unsigned> cut;
  for (auto [dim, from, to] : llvm::enumerate(
           shapeOf(slice.getOperand().getType()), shapeOf(slice.getType()))) {
    if (from == to)
      continue;
    if (cut)
      return std::nullopt;
    cut = dim;
  }
  return cut;
}

/// Returns true if a slice selects elements of a stack: one, such as the
/// weights of a layer, or several that are read one by one, such as the layers
/// that are left over when a loop is unrolled.
static bool isOfStack(stablehlo::SliceOp slice) {
  std::optional<unsigned> cut = cutDimension(slice);
  if (!cut)
    return false;
  return shapeOf(slice.getType())[*cut] == 1 ||
         llvm::all_of(slice->getUsers(), [&](Operation *user) {
           auto one = dyn_cast<stablehlo::SliceOp>(user);
           return one && cutDimension(one) == cut &&
                  shapeOf(one.getType())[*cut] == 1;
         });
}

/// Returns true if a slice cuts off what a sum over ranks was padded with, so
/// that each rank gets a part of the same size.
static bool cutsOffPadding(stablehlo::SliceOp slice) {
  Operation *op = slice.getOperand().getDefiningOp();
  while (isa_and_nonnull<stablehlo::ReshapeOp, stablehlo::ReduceOp, ExchangeOp>(
      op))
    op = op->getOperand(0).getDefiningOp();
  auto pad = dyn_cast_or_null<stablehlo::PadOp>(op);
  return pad && pad.getOperand().getType() == slice.getType();
}

/// Returns the operand that a result copies, with another shape, type, position
/// or rank. A convolution and its gradients multiply different windows of a
/// tensor.
static Value copyOf(OpResult result) {
  Operation *op = result.getOwner();
  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return op->getOperand(result.getResultNumber());
  if (isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, stablehlo::ReverseOp,
          stablehlo::BroadcastInDimOp, stablehlo::ConvertOp,
          stablehlo::ReducePrecisionOp, stablehlo::DynamicSliceOp,
          stablehlo::PadOp, stablehlo::NegOp, WindowsOp, ExchangeOp>(op))
    return op->getOperand(0);
  if (auto slice = dyn_cast<stablehlo::SliceOp>(op))
    return isOfStack(slice) || cutsOffPadding(slice) ? slice.getOperand()
                                                     : Value();
  // The new part of a stack; the old content is zero or another layer's.
  if (isa<stablehlo::DynamicUpdateSliceOp>(op))
    return op->getOperand(1);
  return {};
}

/// Returns the type that a tensor has in the step: that of a rank's part if
/// nothing reads more of it.
static Type typeInStep(Value argument) {
  Type type = argument.getType();
  for (Operation *user : argument.getUsers()) {
    if (!user->hasAttr(stablehlo::kPartAttrName))
      return argument.getType();
    type = user->getResult(0).getType();
  }
  return type;
}

Gradients::Gradients(func::FuncOp func) {
  for (Value argument : func.getArguments())
    if (auto type = dyn_cast<ShapedType>(typeInStep(argument)))
      forms[fresh(argument)].elements = type.getNumElements();
  visit(func.getBody().front());
}

unsigned Gradients::fresh(Value value) {
  unsigned number = forms.size();
  forms.emplace_back();
  forms.back().isEvidence = !isScalar(value.getType()) && !isConstant(value);
  forms.back().isConstant = isConstant(value);
  if (auto type = dyn_cast<ShapedType>(value.getType()))
    forms.back().elements = type.getNumElements();
  partners.emplace_back();
  terms.emplace_back();
  sums.emplace_back();
  innerProductPartners.emplace_back();
  numbers[value] = number;
  return number;
}

unsigned Gradients::numberOf(Value value) {
  auto it = numbers.find(value);
  return it == numbers.end() ? fresh(value) : it->second;
}

/// Gives `value` the number of its form: what it is computed from.
void Gradients::define(Value value, Form form) {
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  SmallVector<unsigned> operands = llvm::to_vector(form.operands);
  if (op->hasTrait<OpTrait::IsCommutative>())
    llvm::sort(operands);
  size_t hash = llvm::hash_combine(
      op->getName().getAsOpaquePointer(), result.getResultNumber(),
      value.getType().getAsOpaquePointer(),
      isConstant(value) ? op->getAttrDictionary().getAsOpaquePointer()
                        : nullptr,
      llvm::hash_combine_range(operands.begin(), operands.end()));
  auto [it, isNew] = known.try_emplace(hash, forms.size());
  if (!isNew) {
    numbers[value] = it->second;
    return;
  }
  unsigned number = fresh(value);
  // A value that is computed from constants alone, such as a mask, is a
  // constant.
  form.isConstant = forms[number].isConstant ||
                    (!form.operands.empty() && op->getNumRegions() == 0 &&
                     llvm::all_of(form.operands, [&](unsigned operand) {
                       return forms[operand].isConstant;
                     }));
  form.isEvidence = forms[number].isEvidence && !form.isConstant;
  form.elements = forms[number].elements;
  forms[number] = std::move(form);
}

void Gradients::visit(Block &block) {
  for (Operation &op : block)
    visit(op);
}

void Gradients::visitLoop(Operation &loop) {
  Region &body = loop.getRegion(1);
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    // A tensor keeps its number while a loop changes it: in a loop over steps,
    // updated weights are still the same weights.
    unsigned initial = numberOf(loop.getOperand(i));
    if (forms[initial].isConstant)
      fresh(argument);
    else
      numbers[argument] = initial;
  }
  visit(body.front());
  for (auto [i, result] : llvm::enumerate(loop.getResults())) {
    Value argument = body.getArgument(i), next = yielded(body, i);
    auto update = next.getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
    if (next == argument || (update && update->getOperand(0) == argument)) {
      numbers[result] = numberOf(next);
      continue;
    }
    // A sum over the iterations, for instance of the gradients of
    // micro-batches.
    unsigned number = fresh(result);
    forms[number].kind = Form::Sum;
    forms[number].operands = {numberOf(next)};
  }
}

/// Returns true if a product is only used to be summed up to a scalar.
static bool isSummedToScalar(Operation &op) {
  if (isa<stablehlo::DotGeneralOp>(op))
    return isScalar(op.getResult(0).getType());
  auto isSummed = [](Operation *user) {
    return isa<stablehlo::ReduceOp>(user) &&
           isScalar(user->getResult(0).getType());
  };
  return isa<stablehlo::MulOp>(op) && !op.use_empty() &&
         llvm::all_of(op.getUsers(), isSummed);
}

void Gradients::visit(Operation &op) {
  if (isa<stablehlo::WhileOp>(op))
    return visitLoop(op);
  if (stablehlo::isBranch(&op))
    return visitBranches(op);
  // A scalar factor does not change what a tensor is.
  if (isa<stablehlo::MulOp, stablehlo::DivOp>(op))
    for (unsigned i = 0, e = isa<stablehlo::MulOp>(op) ? 2 : 1; i < e; ++i) {
      unsigned tensor = numberOf(op.getOperand(i));
      if (forms[tensor].isEvidence &&
          !forms[numberOf(op.getOperand(1 - i))].isEvidence) {
        numbers[op.getResult(0)] = tensor;
        return;
      }
    }
  if (auto slice = dyn_cast<stablehlo::SliceOp>(op); slice && visitPart(slice))
    return;
  Form form = formOf(op);
  for (OpResult result : op.getResults()) {
    if (Value source = copyOf(result)) {
      numbers[result] = numberOf(source);
      continue;
    }
    define(result, form);
    addTerms(op, form, numbers[result]);
  }
}

/// Numbers a slice of a concatenation of known parts. Returns false if it is
/// none.
bool Gradients::visitPart(stablehlo::SliceOp slice) {
  std::optional<unsigned> cut = cutDimension(slice);
  ArrayRef<unsigned> parts = forms[numberOf(slice.getOperand())].parts;
  if (!cut || slice.getStrides()[*cut] != 1 ||
      static_cast<int64_t>(parts.size()) !=
          shapeOf(slice.getOperand().getType())[*cut])
    return false;
  Form form;
  form.kind = Form::Sum;
  llvm::append_range(form.parts, parts.slice(slice.getStartIndices()[*cut],
                                             shapeOf(slice.getType())[*cut]));
  form.operands = form.parts;
  if (form.parts.size() == 1)
    numbers[slice.getResult()] = form.parts.front();
  else
    define(slice.getResult(), form);
  return true;
}

/// Returns the elements of a concatenation of single elements, or of such
/// concatenations, as the body of an unrolled loop makes them.
SmallVector<unsigned, 2> Gradients::partsOf(stablehlo::ConcatenateOp op) const {
  SmallVector<unsigned, 2> parts;
  for (Value operand : op->getOperands()) {
    int64_t extent = shapeOf(operand.getType())[op.getDimension()];
    unsigned number = numbers.lookup(operand);
    ArrayRef<unsigned> inner =
        extent == 1 ? ArrayRef(number) : ArrayRef(forms[number].parts);
    if (static_cast<int64_t>(inner.size()) != extent)
      return {};
    llvm::append_range(parts, inner);
  }
  return parts;
}

void Gradients::visitBranches(Operation &op) {
  for (Region &region : op.getRegions())
    visit(region.front());
  for (OpResult result : op.getResults()) {
    Form form;
    form.kind = Form::Sum;
    for (Region &region : op.getRegions())
      form.operands.push_back(
          numberOf(yielded(region, result.getResultNumber())));
    define(result, form);
  }
}

Gradients::Form Gradients::formOf(Operation &op) {
  Form form;
  for (Value operand : op.getOperands())
    form.operands.push_back(numberOf(operand));
  auto addPartners = [&](unsigned a, unsigned b) {
    auto &met = isSummedToScalar(op) ? innerProductPartners : partners;
    if (forms[b].isEvidence)
      met[a].push_back(b);
    if (forms[a].isEvidence)
      met[b].push_back(a);
  };
  if (isa<stablehlo::DotGeneralOp, stablehlo::ConvolutionOp, stablehlo::MulOp,
          stablehlo::DivOp, stablehlo::GatherOp>(op)) {
    form.kind = Form::Product;
    addPartners(form.operands[0], form.operands[1]);
  } else if (isa<stablehlo::ScatterOp>(op) && op.getNumOperands() == 3) {
    // The gradient of a lookup is a product of the indices and the updates.
    form.kind = Form::Product;
    form.operands.erase(form.operands.begin());
    addPartners(form.operands[0], form.operands[1]);
  } else if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(op)) {
    form.kind = Form::Sum;
  } else if (isa<stablehlo::SelectOp>(op)) {
    form.kind = Form::Sum;
    form.operands.erase(form.operands.begin());
  } else if (auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op)) {
    form.kind = Form::Sum;
    form.parts = partsOf(concatenate);
  } else if (isa<stablehlo::ReduceOp>(op) && op.getNumOperands() == 2) {
    form.kind = Form::Reduction;
    form.operands.pop_back();
  }
  return form;
}

void Gradients::addTerms(Operation &op, const Form &form, unsigned result) {
  // Weights may be masked, or selected by a flag.
  if (isa<stablehlo::SelectOp>(op))
    for (unsigned term : form.operands)
      if (forms[term].isEvidence)
        sums[term].push_back(result);
  if (!isa<stablehlo::AddOp, stablehlo::SubtractOp>(op))
    return;
  // A bias has fewer elements than the value that it is added to.
  for (unsigned i : {0, 1}) {
    unsigned term = form.operands[i], other = form.operands[1 - i];
    if (!forms[term].isEvidence || !forms[other].isEvidence)
      continue;
    if (forms[term].elements == forms[result].elements)
      sums[term].push_back(result);
    else
      terms[term].push_back(other);
  }
}

/// Returns the factors of the products that a value is a sum of, nearest first.
Gradients::Factors Gradients::factorsOf(unsigned start) const {
  // The limit is needed because a residual stream is a sum of everything before
  // it.
  constexpr unsigned kReach = 12;
  Factors factors;
  SmallVector<std::pair<unsigned, double>> queue{{start, 1.0}};
  auto push = [&](unsigned number, double weight) {
    if (queue.size() < kReach && llvm::none_of(queue, [&](auto &entry) {
          return entry.first == number;
        }))
      queue.push_back({number, weight});
  };
  auto add = [&](unsigned number, double weight) {
    if (forms[number].isEvidence && llvm::none_of(factors, [&](auto &entry) {
          return entry.first == number;
        }))
      factors.push_back({number, weight});
  };
  for (size_t i = 0; i < queue.size(); ++i) {
    auto [number, weight] = queue[i];
    const Form &form = forms[number];
    switch (form.kind) {
    case Form::Product:
      for (unsigned operand : form.operands)
        add(operand, weight);
      break;
    case Form::Sum:
      for (unsigned operand : form.operands)
        push(operand, weight / 2);
      break;
    case Form::Reduction: {
      // The gradient of a bias is a reduction, so its factors are the other
      // values that the reduced gradient is multiplied with.
      unsigned inner = form.operands.front();
      if (forms[inner].kind == Form::Product || forms[inner].kind == Form::Sum)
        push(inner, weight);
      add(inner, weight);
      for (unsigned partner : partners[inner])
        add(partner, weight);
      break;
    }
    case Form::Other:
      break;
    }
  }
  return factors;
}

Gradients::Factors Gradients::factorsOf(Value gradient) const {
  auto it = numbers.find(gradient);
  return it == numbers.end() ? Factors() : factorsOf(it->second);
}

Gradients::Factors Gradients::partnersOf(Value tensor) const {
  Factors out;
  auto it = numbers.find(tensor);
  if (it == numbers.end())
    return out;
  auto add = [&](unsigned number, double weight) {
    if (llvm::none_of(out, [&](auto &entry) { return entry.first == number; }))
      out.push_back({number, weight});
  };
  for (unsigned partner : partners[it->second])
    add(partner, 1);
  // Weights that are modified before they are used.
  for (unsigned sum : sums[it->second])
    for (unsigned partner : partners[sum])
      add(partner, 0.5);
  for (unsigned term : terms[it->second])
    for (auto [factor, weight] : factorsOf(term))
      add(factor, weight);
  if (out.empty())
    for (unsigned partner : innerProductPartners[it->second])
      add(partner, 1);
  return out;
}

double Gradients::evidence(Value tensor, const Factors &partners,
                           Value gradient) const {
  auto own = numbers.find(tensor), other = numbers.find(gradient);
  if (own == numbers.end() || other == numbers.end())
    return 0;
  DenseMap<unsigned, double> weights(partners.begin(), partners.end());
  double sum = 0;
  unsigned met = 0;
  for (auto [factor, weight] : factorsOf(other->second)) {
    // A gradient is never a product that contains its own tensor.
    if (factor == own->second)
      return 0;
    auto it = weights.find(factor);
    if (it == weights.end())
      continue;
    sum += weight * it->second;
    ++met;
  }
  // A tensor is multiplied with activations, not with its gradient. The
  // exception is an optimizer such as coin betting, which multiplies its
  // gradient by the distance that the tensor has moved; but a value with two
  // factors that are partners of the tensor is a gradient in any case.
  auto product = weights.find(other->second);
  if (product != weights.end() && product->second == 1 && met < 2)
    return 0;
  // A loss that is an inner product contains an activation. A gradient has two
  // factors that are partners of the tensor, one in the forward and one in the
  // backward pass.
  if (llvm::is_contained(innerProductPartners[own->second], other->second) &&
      sum < 2)
    return 0;
  return sum;
}
