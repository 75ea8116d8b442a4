//===- OperandRows.cpp - Rows of the batch in operands of dots ------------===//

#include "OperandRows.h"
#include "SignatureExtension.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr StringLiteral kWords[] = {"none", "free", "contracted"};

OperandRows fp8::getOperandRows(Operation *dot, unsigned operand) {
  auto rows = dot->getAttrOfType<ArrayAttr>(FP8Dialect::kRowsAttrName);
  if (!rows || operand >= rows.size())
    return OperandRows::None;
  StringRef word = cast<StringAttr>(rows[operand]).getValue();
  const auto *found = llvm::find(kWords, word);
  return found == std::end(kWords)
             ? OperandRows::None
             : static_cast<OperandRows>(found - std::begin(kWords));
}

void fp8::setOperandRows(Operation *dot, ArrayRef<OperandRows> rows) {
  SmallVector<Attribute> words;
  for (OperandRows each : rows)
    words.push_back(StringAttr::get(dot->getContext(),
                                    kWords[static_cast<unsigned>(each)]));
  dot->setAttr(FP8Dialect::kRowsAttrName,
               ArrayAttr::get(dot->getContext(), words));
}

Value fp8::reduceAmaxOverRanks(OpBuilder &builder, Value amax, StringRef name) {
  auto reduce =
      AllReduceOp::create(builder, amax.getLoc(), Reduction::Max, amax,
                          builder.getStringAttr("amax " + getTensorName(name)));
  reduce->setAttr(FP8Dialect::kWireReasonAttrName,
                  builder.getStringAttr("amaxes travel as they are"));
  return reduce.getResult();
}
