// src/model/gguf_types.cpp - the tensor types of GGUF
#include "ptxgen/model/gguf_types.hpp"

#include <algorithm>

namespace ptxgen::inline v0::gguf {

namespace {

// Sizes of blocks from ggml-common.h.
constexpr TensorType kTensorTypes[] = {
    {0, "F32", 1, 4, ElementType::f32},
    {1, "F16", 1, 2, ElementType::f16},
    {2, "Q4_0", 32, 18, ElementType::q4_0},
    {3, "Q4_1", 32, 20, ElementType::q4_1},
    {6, "Q5_0", 32, 22, ElementType::q5_0},
    {7, "Q5_1", 32, 24, ElementType::q5_1},
    {8, "Q8_0", 32, 34, ElementType::q8_0},
    {9, "Q8_1", 32, 36, ElementType::q8_1},
    {10, "Q2_K", 256, 84, {}},
    {11, "Q3_K", 256, 110, {}},
    {12, "Q4_K", 256, 144, ElementType::q4_k},
    {13, "Q5_K", 256, 176, ElementType::q5_k},
    {14, "Q6_K", 256, 210, ElementType::q6_k},
    {15, "Q8_K", 256, 292, {}},
    {24, "I8", 1, 1, {}},
    {25, "I16", 1, 2, {}},
    {26, "I32", 1, 4, ElementType::s32},
    {27, "I64", 1, 8, {}},
    {28, "F64", 1, 8, {}},
    {30, "BF16", 1, 2, ElementType::bf16},
};

// Types of ggml that are not supported, removed ones included.
struct OtherType {
  std::uint32_t id;
  std::string_view name;
};
constexpr OtherType kOtherTypes[] = {
    {4, "Q4_2"},   {5, "Q4_3"},        {16, "IQ2_XXS"},    {17, "IQ2_XS"},     {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"},     {21, "IQ3_S"},      {22, "IQ2_S"},      {23, "IQ4_XS"},
    {29, "IQ1_M"}, {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"},   {34, "TQ1_0"},
    {35, "TQ2_0"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {39, "MXFP4"},
    {40, "NVFP4"}, {41, "Q1_0"},
};

constexpr bool agrees(const TensorType& row) {
  return !row.element || (info(*row.element).block_values == row.block_values &&
                          info(*row.element).block_bytes == row.block_bytes);
}
static_assert(std::ranges::all_of(kTensorTypes, agrees), "sizes as those of the element types");
static_assert(std::ranges::is_sorted(kTensorTypes, {}, &TensorType::id));

}  // namespace

std::span<const TensorType> tensor_types() noexcept { return kTensorTypes; }

const TensorType* find_tensor_type(std::uint32_t id) noexcept {
  const auto found = std::ranges::find(kTensorTypes, id, &TensorType::id);
  return found == std::end(kTensorTypes) ? nullptr : found;
}

const TensorType* find_tensor_type(std::string_view name) noexcept {
  const auto found = std::ranges::find(kTensorTypes, name, &TensorType::name);
  return found == std::end(kTensorTypes) ? nullptr : found;
}

std::string_view tensor_type_name(std::uint32_t id) noexcept {
  if (const TensorType* type = find_tensor_type(id)) return type->name;
  const auto found = std::ranges::find(kOtherTypes, id, &OtherType::id);
  return found == std::end(kOtherTypes) ? std::string_view{} : found->name;
}

}  // namespace ptxgen::inline v0::gguf
