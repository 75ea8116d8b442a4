//===- CuteTest.cpp - Fragments compared with CuTe's layouts --------------===//
//
// CuTe (PyPI's nvidia-cutlass) describes fragments as layouts: functions of
// lane and element. They are an independent reference, and kernels that use
// them have run on cards.
//
//===----------------------------------------------------------------------===//

#include "gtest/gtest.h"

#ifndef FP8_HAS_CUTE

TEST(Cute, IsMissing) {
  GTEST_SKIP() << "CuTe, libcu++ or cuda.h was not found when this was built";
}

#else

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm89.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/layout.hpp>
#include <cute/swizzle.hpp>
#include <cute/tensor.hpp>

#include "Descriptor.h"
#include "Fragments.h"
#include "TensorMap.h"

using namespace fp8::emulator;

/// CuTe numbers an element of a matrix as row + rows * column.
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
    // CuTe's rows are the columns of B.
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

/// ldmatrix: CuTe counts bits, in consecutive rows of 128.
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

/// Compares swizzles of bytes with those of CuTe's layouts of wgmma operands.
TEST(Cute, SwizzlesAreTheSame) {
  for (unsigned address = 0; address < 4096; ++address) {
    EXPECT_EQ(swizzled(address, 0), address);
    EXPECT_EQ(swizzled(address, 32), (cute::Swizzle<1, 4, 3>::apply(address)));
    EXPECT_EQ(swizzled(address, 64), (cute::Swizzle<2, 4, 3>::apply(address)));
    EXPECT_EQ(swizzled(address, 128), (cute::Swizzle<3, 4, 3>::apply(address)));
  }
}

/// Compares the fragments of wgmma, numbered by the 128 threads of a warpgroup.
template <typename Atom> static void compareWgmma(unsigned perRegister) {
  using Traits = cute::MMA_Traits<Atom>;
  typename Traits::ALayout a;
  typename Traits::CLayout c;
  for (unsigned thread = 0; thread < 128; ++thread) {
    unsigned firstRow = thread / 32 * 16;
    for (unsigned i = 0; i < cute::size<1>(a); ++i) {
      Place place = placeInA(thread % 32, i, perRegister);
      EXPECT_EQ(firstRow + place.row + 64 * place.column,
                unsigned(a(thread, i)));
    }
    for (unsigned i = 0; i < cute::size<1>(c); ++i) {
      Place place = placeInWgmmaD(thread % 32, i);
      EXPECT_EQ(firstRow + place.row + 64 * place.column,
                unsigned(c(thread, i)));
    }
  }
}

namespace gmma = cute::SM90::GMMA;

TEST(Cute, FragmentsOfWgmmaAreTheSame) {
  compareWgmma<gmma::MMA_64x8x32_F32E4M3E4M3_RS_TN<>>(4);
  compareWgmma<gmma::MMA_64x256x32_F32E5M2E4M3_RS_TN<>>(4);
  compareWgmma<
      gmma::MMA_64x128x16_F32BF16BF16_RS<gmma::Major::K, gmma::Major::K>>(2);
}

/// The matrix of one instruction that CuTe tiles with `Atom`: its descriptor
/// has to lead to where CuTe's layout has the elements.
template <gmma::Major major, typename Atom, int rows, int columns,
          typename Element>
static void compareDescriptor() {
  alignas(4096) static Element memory[rows * columns];
  auto layout = cute::tile_to_shape(
      Atom{}, cute::Shape<cute::Int<rows>, cute::Int<columns>>{});
  auto whole = cute::make_tensor(cute::make_smem_ptr(memory), layout);
  constexpr int k = 32 / sizeof(Element);
  auto tile =
      cute::local_tile(whole, cute::Shape<cute::Int<rows>, cute::Int<k>>{},
                       cute::make_coord(0, 0));
  // On the host the descriptor has no start address: 0.
  Descriptor descriptor(
      static_cast<uint64_t>(gmma::make_gmma_desc<major>(tile)));
  EXPECT_EQ(descriptor.invalid(), "");
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < k; ++i) {
      uint64_t expected = reinterpret_cast<const char *>(&tile(row, i)) -
                          reinterpret_cast<const char *>(memory);
      constexpr unsigned bytes = sizeof(Element);
      uint64_t place =
          major == gmma::Major::K
              ? descriptor.pieceAlongK(row, i * bytes) + i * bytes % 16
              : descriptor.pieceAlongMN(row, i) + row % 8 * bytes;
      ASSERT_EQ(place, expected) << row << " " << i;
    }
}

TEST(Cute, DescriptorsMeanTheSame) {
  using F8 = cute::float_e4m3_t;
  using BF16 = cute::bfloat16_t;
  constexpr auto K = gmma::Major::K, MN = gmma::Major::MN;
  compareDescriptor<K, gmma::Layout_K_SW128_Atom<F8>, 64, 128, F8>();
  compareDescriptor<K, gmma::Layout_K_SW64_Atom<F8>, 64, 128, F8>();
  compareDescriptor<K, gmma::Layout_K_SW32_Atom<F8>, 128, 64, F8>();
  compareDescriptor<K, gmma::Layout_K_INTER_Atom<F8>, 64, 64, F8>();
  compareDescriptor<K, gmma::Layout_K_SW128_Atom<BF16>, 64, 64, BF16>();
  compareDescriptor<MN, gmma::Layout_MN_SW128_Atom<BF16>, 128, 64, BF16>();
  compareDescriptor<MN, gmma::Layout_MN_SW64_Atom<BF16>, 128, 64, BF16>();
  compareDescriptor<MN, gmma::Layout_MN_SW32_Atom<BF16>, 128, 64, BF16>();
  compareDescriptor<MN, gmma::Layout_MN_INTER_Atom<BF16>, 128, 64, BF16>();
}

#endif // FP8_HAS_CUTE
