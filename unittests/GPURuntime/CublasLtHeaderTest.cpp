//===- CublasLtHeaderTest.cpp - CublasLt.h and the toolkit's header -------===//

#include <cublasLt.h>

#include "GPU/CublasLt.h"
#include "gtest/gtest.h"

namespace ours = fp8::cublaslt;

TEST(CudaHeader, NumbersAreCublasLts) {
  EXPECT_EQ(int(ours::Success), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(int(ours::NotInitialized), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(int(ours::AllocFailed), CUBLAS_STATUS_ALLOC_FAILED);
  EXPECT_EQ(int(ours::InvalidValue), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(int(ours::ArchMismatch), CUBLAS_STATUS_ARCH_MISMATCH);
  EXPECT_EQ(int(ours::ExecutionFailed), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(int(ours::InternalError), CUBLAS_STATUS_INTERNAL_ERROR);
  EXPECT_EQ(int(ours::NotSupported), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(int(ours::Real32F), CUDA_R_32F);
  EXPECT_EQ(int(ours::Real16F), CUDA_R_16F);
  EXPECT_EQ(int(ours::Real16BF), CUDA_R_16BF);
  EXPECT_EQ(int(ours::Real8FE4M3), CUDA_R_8F_E4M3);
  EXPECT_EQ(int(ours::Real8FE5M2), CUDA_R_8F_E5M2);
  EXPECT_EQ(int(ours::Compute32F), CUBLAS_COMPUTE_32F);
  EXPECT_EQ(int(ours::OpN), CUBLAS_OP_N);
  EXPECT_EQ(int(ours::OpT), CUBLAS_OP_T);
  EXPECT_EQ(int(ours::DescTransA), CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(int(ours::DescTransB), CUBLASLT_MATMUL_DESC_TRANSB);
  EXPECT_EQ(int(ours::DescAScalePointer), CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  EXPECT_EQ(int(ours::DescBScalePointer), CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  EXPECT_EQ(int(ours::DescFastAccum), CUBLASLT_MATMUL_DESC_FAST_ACCUM);
  EXPECT_EQ(int(ours::PreferenceMaxWorkspaceBytes),
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(int(ours::PreferenceMinAlignmentA),
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  EXPECT_EQ(int(ours::PreferenceMinAlignmentB),
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  EXPECT_EQ(int(ours::PreferenceMinAlignmentC),
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  EXPECT_EQ(int(ours::PreferenceMinAlignmentD),
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  EXPECT_EQ(sizeof(ours::Algorithm), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(ours::HeuristicResult),
            sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(offsetof(ours::HeuristicResult, workspaceBytes),
            offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  EXPECT_EQ(offsetof(ours::HeuristicResult, state),
            offsetof(cublasLtMatmulHeuristicResult_t, state));
}
