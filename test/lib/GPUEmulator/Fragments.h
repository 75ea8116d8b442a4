//===- Fragments.h - Where the elements of a fragment lie -------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_FRAGMENTS_H
#define FP8_TEST_LIB_GPUEMULATOR_FRAGMENTS_H

namespace fp8::emulator {

/// The row and column of an element of a fragment.
struct Place {
  unsigned row, column;
};

// The fragments of mma.m16n8k*, PTX ISA 9.7.14.5 ("Matrix Fragments for
// mma.m16n8k8, .m16n8k16, .m16n8k32"). All follow one rule: a group of four
// lanes has a row of A (a column of B), and each lane has `perRegister`
// adjacent elements of it in one 32-bit register. The second register of A is
// eight rows below, the remaining registers are in the second half of k.

// `groupID = laneid >> 2; threadID_in_group = laneid % 4`
inline Place placeInA(unsigned lane, unsigned element, unsigned perRegister) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  unsigned reg = element / perRegister;
  return {group + 8 * (reg & 1), inGroup * perRegister + element % perRegister +
                                     4 * perRegister * (reg >> 1)};
}

// The row of an element of B is its index along k.
inline Place placeInB(unsigned lane, unsigned element, unsigned perRegister) {
  unsigned group = lane >> 2, inGroup = lane % 4;
  unsigned reg = element / perRegister;
  return {inGroup * perRegister + element % perRegister + 4 * perRegister * reg,
          group};
}

// `row = groupID for ci where i < 2, groupID + 8 else;
//  col = threadID_in_group * 2 + (i & 0x1)`
inline Place placeInC(unsigned lane, unsigned element) {
  return {(lane >> 2) + 8 * (element >> 1), lane % 4 * 2 + (element & 1)};
}

// PTX ISA 9.7.15.5.1.1, the accumulators of wgmma.m64nN: each warp has 16 rows.
// In every 8 columns, a lane has the same elements as in C.
inline Place placeInWgmmaD(unsigned lane, unsigned element) {
  Place place = placeInC(lane, element % 4);
  return {place.row, place.column + element / 4 * 8};
}

// PTX ISA 9.7.14.5.15, ldmatrix: returns the first of the two 16-bit elements
// of a matrix that a lane gets, from a row or, with .trans, from a column.
inline Place placeInMatrix(unsigned lane, bool isTransposed) {
  Place place = {lane / 4, lane % 4 * 2};
  return isTransposed ? Place{place.column, place.row} : place;
}

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_FRAGMENTS_H
