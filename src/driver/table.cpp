// src/driver/table.cpp - rows and texts of the Driver API
#include "ptxgen/driver/table.hpp"

#include <algorithm>
#include <iterator>

#include "support/format.hpp"

namespace ptxgen::inline v0::driver {
namespace {

constexpr ObjectEffect creates(Object object) { return {object, +1}; }
constexpr ObjectEffect frees(Object object) { return {object, -1}; }
constexpr ObjectEffect no_effect{};

constexpr FunctionInfo kFunctions[] = {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  {#field, #symbol, Need::need, since, effect},
#include "ptxgen/driver/functions.def"
};
static_assert(sizeof(Table) == std::size(kFunctions) * sizeof(void (*)()));

struct ResultInfo {
  CUresult result;
  const char* name;
  const char* words;
};
constexpr ResultInfo kResults[] = {
#define PTXGEN_DRIVER_RESULT(name, value, words) {name, #name, words},
#include "ptxgen/driver/results.def"
};
static_assert(std::ranges::is_sorted(kResults, {}, &ResultInfo::result));

const ResultInfo* find_result(CUresult result) noexcept {
  const auto* const found = std::ranges::lower_bound(kResults, result, {}, &ResultInfo::result);
  return found != std::end(kResults) && found->result == result ? found : nullptr;
}

struct PtxOfDriver {
  int driver;
  int ptx;
};
// The manual's table of PTX ISA versions and the CUDA release that brought them.
constexpr PtxOfDriver kNewestPtx[] = {
    {10020, 65}, {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74}, {11050, 75},
    {11060, 76}, {11070, 77}, {11080, 78}, {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83},
    {12040, 84}, {12050, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91},
    {13020, 92}, {13030, 93}, {13040, 94}, {13050, 95},
};

}  // namespace

std::span<const FunctionInfo> functions() noexcept { return kFunctions; }

std::string result_name(CUresult result) {
  const ResultInfo* const info = find_result(result);
  return info != nullptr ? info->name : format_text("CUresult {}", static_cast<int>(result));
}

std::string result_text(CUresult result) {
  const ResultInfo* const info = find_result(result);
  if (info == nullptr) return result_name(result);
  return format_text("{} ({}): {}", info->name, static_cast<int>(result), info->words);
}

std::string result_text(const Table& table, CUresult result) {
  const char* name = nullptr;
  const char* words = nullptr;
  // A driver that does not know the code sets neither.
  if (table.get_error_name == nullptr || table.get_error_name(result, &name) != CUDA_SUCCESS ||
      name == nullptr) {
    return result_text(result);
  }
  std::string text = format_text("{} ({})", name, static_cast<int>(result));
  if (table.get_error_string != nullptr && table.get_error_string(result, &words) == CUDA_SUCCESS &&
      words != nullptr) {
    text += ": " + std::string(words);
  }
  return text;
}

std::string version_text(int version) {
  return format_text("{}.{}", version / 1000, version % 1000 / 10);
}

int newest_ptx(int driver_version) noexcept {
  int newest = 0;
  for (const PtxOfDriver& row : kNewestPtx) {
    if (driver_version >= row.driver) newest = row.ptx;
  }
  return newest;
}

}  // namespace ptxgen::inline v0::driver
