//===- PrecompiledHeaders.cpp - A source to compile headers for -----------===//
//
// CMake compiles headers for a target with at least one source.
//
//===----------------------------------------------------------------------===//
