//===- CuteTest.cpp - Fragments beside CuTe's layouts ---------------------===//
//
// CuTe (PyPI's nvidia-cutlass) has the places of fragments as layouts:
// functions of lane and element. They were written by others, and kernels that
// use them have run on cards.
//
//===----------------------------------------------------------------------===//

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm89.hpp>
#include <cute/layout.hpp>
#include <cute/swizzle.hpp>

#include "Fragments.h"
#include "TensorMap.h"

#include "gtest/gtest.h"

using namespace fp8::emulator;

/// CuTe counts an element of a matrix as row + rows * column.
template <typename Atom> static void compare(unsigned perRegister) {
  using Traits = cute::MMA_Traits<Atom>;
  typename Traits::ALayout a;
  typename Traits::BLayout b;
  typename Traits::CLayout c;
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < cute::size<1>(a); ++i) {
      Place place = placeInA(lane, i, perRegister);
      EXPECT_EQ(place.row + 16 * place.column, unsigned(a(lane, i)))
          << lane << " " << i;
    }
    // Its rows are the columns of B.
    for (unsigned i = 0; i < cute::size<1>(b); ++i) {
      Place place = placeInB(lane, i, perRegister);
      EXPECT_EQ(place.column + 8 * place.row, unsigned(b(lane, i)))
          << lane << " " << i;
    }
    for (unsigned i = 0; i < cute::size<1>(c); ++i) {
      Place place = placeInC(lane, i);
      EXPECT_EQ(place.row + 16 * place.column, unsigned(c(lane, i)))
          << lane << " " << i;
    }
  }
}

TEST(Cute, FragmentsAreTheSame) {
  compare<cute::SM89_16x8x32_F32E4M3E4M3F32_TN>(4);
  compare<cute::SM89_16x8x32_F32E5M2E5M2F32_TN>(4);
  compare<cute::SM80_16x8x16_F32BF16BF16F32_TN>(2);
  compare<cute::SM80_16x8x8_F32BF16BF16F32_TN>(2);
  compare<cute::SM80_16x8x16_F32F16F16F32_TN>(2);
  compare<cute::SM80_16x8x8_F32TF32TF32F32_TN>(1);
  compare<cute::SM80_16x8x4_F32TF32TF32F32_TN>(1);
}

/// ldmatrix: CuTe counts bits, rows of 128 one after another.
TEST(Cute, MatricesAreLoadedTheSame) {
  typename cute::Copy_Traits<cute::SM75_U32x1_LDSM_N>::DstLayout plain;
  typename cute::Copy_Traits<cute::SM75_U16x2_LDSM_T>::DstLayout transposed;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned element = 0; element < 2; ++element) {
      Place place = placeInMatrix(lane, false);
      EXPECT_EQ(128 * place.row + 16 * (place.column + element),
                unsigned(plain(lane, 16 * element)));
      place = placeInMatrix(lane, true);
      EXPECT_EQ(128 * (place.row + element) + 16 * place.column,
                unsigned(transposed(lane, 16 * element)));
    }
}

/// CuTe's swizzles of bytes, as its layouts of operands of wgmma have them.
TEST(Cute, SwizzlesAreTheSame) {
  for (unsigned address = 0; address < 4096; ++address) {
    EXPECT_EQ(swizzled(address, 0), address);
    EXPECT_EQ(swizzled(address, 32), (cute::Swizzle<1, 4, 3>::apply(address)));
    EXPECT_EQ(swizzled(address, 64), (cute::Swizzle<2, 4, 3>::apply(address)));
    EXPECT_EQ(swizzled(address, 128), (cute::Swizzle<3, 4, 3>::apply(address)));
  }
}
