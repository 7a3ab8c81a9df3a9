// ptxgen/kernels/attention/flash_problem.hpp - attention of many queries, and its operands
#pragma once

#include <array>
#include <string>
#include <utility>

#include "ptxgen/kernels/attention/cache_types.hpp"

namespace ptxgen::inline v0 {

inline constexpr std::uint32_t kMaxFlashGroup = 16;

/// Operands of a launch. Leave those that the problem does not have empty.
struct FlashOperands {
  DeviceRange out{}, q{}, k{}, v{}, key_lengths{}, query_lengths{}, table{};
  float scale = 0;  ///< positive; 0: 1 / sqrt(head_size)
};

/// For each row (a sequence), query head h and query i:
/// `out[h][i] = sum over j of p_j v[j]` with `p = softmax over j of scale * (q[h][i] . k[j])`.
///
/// Of `keys` keys query i attends all, or with `causal` those up to `i + keys - queries`, so that
/// the last query attends the last key; with a `window` only the last `window` of these. A query
/// that attends no key gives exactly 0. With `variable` each row has its own numbers of keys and
/// queries, `min(key_lengths[row], keys)` and `min(query_lengths[row], queries)`, read from device
/// memory; queries from there on give 0.
///
/// q and out are [row][head][query][head_size], or with `tokens_first` [row][query][head]
/// [head_size], as projections leave them. k and v are [row][kv_head][max_seq][head_size], without
/// the rows if `shared_cache`: the cache of `attention_decode`. Query head h uses K/V head h /
/// `group`.
///
/// With a `page` the cache is paged: k and v are [page][kv_head][position in it][head_size], and
/// `table`, [row][ceil(max_seq / page)], has the number of the page of each `page` positions.
/// Numbers from `pages` on count as the last page. Entries of pages without keys are not read.
struct FlashProblem {
  using Operands = FlashOperands;

  std::uint32_t rows = 1;                ///< sequences: the grid's z
  std::uint32_t kv_heads = 8;            ///< heads of k and v
  std::uint32_t group = 1;               ///< query heads for each; query heads are the grid's y
  std::uint32_t head_size = 64;          ///< 16 to 256, a multiple of 16
  std::uint32_t queries = 512;           ///< of each head; a number of the launch, not of the code
  std::uint32_t keys = 512;              ///< the same of k and v
  std::uint32_t max_seq = 0;             ///< positions that the cache holds; 0: `keys`
  ElementType type = ElementType::f32;   ///< of q and out: f32, f16 or bf16
  ElementType cache = ElementType::f32;  ///< of k and v
  bool causal = true;
  std::uint32_t window = 0;   ///< last keys that count, only with `causal`; 0: all
  bool variable = false;      ///< key_lengths and query_lengths
  bool shared_cache = false;  ///< all rows use the same k and v; not with pages
  bool tokens_first = false;  ///< q and out have the heads of a token together
  std::uint32_t page = 0;     ///< positions of a page, a power of two; 0: no pages
  std::uint32_t pages = 0;    ///< in k and v
  bool precise = false;       ///< the precise exp2 and `div.rn`

  [[nodiscard]] constexpr std::uint64_t heads() const noexcept {
    return std::uint64_t{kv_heads} * group;
  }
  /// Positions that the cache, or a row of the table, has.
  [[nodiscard]] constexpr std::uint32_t positions() const noexcept {
    return max_seq == 0 ? keys : max_seq;
  }
  /// Values of q or out.
  [[nodiscard]] constexpr std::uint64_t query_values() const noexcept {
    return std::uint64_t{rows} * heads() * queries * head_size;
  }
  /// Values of k or v.
  [[nodiscard]] constexpr std::uint64_t cache_values() const noexcept {
    const std::uint64_t strips = page != 0 ? pages : shared_cache ? 1 : rows;
    return strips * kv_heads * (page != 0 ? page : positions()) * head_size;
  }
  /// Entries of a row of the table.
  [[nodiscard]] constexpr std::uint32_t table_width() const noexcept {
    return page == 0 ? 0 : (positions() - 1) / page + 1;
  }
  friend bool operator==(const FlashProblem&, const FlashProblem&) = default;
};

namespace detail {

/// The parameters of the family. The last three are of kernels that follow lengths and pages in
/// device memory.
inline constexpr std::array kFlashParameters = {
    number<&FlashProblem::rows>("rows", 1, 65535, "sequences"),
    number<&FlashProblem::kv_heads>("kv_heads", 1, 4095, "heads of k and v"),
    number<&FlashProblem::group>("group", 1, kMaxFlashGroup, "query heads for each head of k and v")
        .specializes(),
    number<&FlashProblem::head_size>("head_size", 16, 256, "elements of a head")
        .multiple_of(16)
        .specializes(),
    number<&FlashProblem::queries>("queries", 1, 1u << 30, "queries of each head"),
    number<&FlashProblem::keys>("keys", 1, 1u << 30, "keys of each head"),
    number<&FlashProblem::max_seq>("max_seq", 0, 1u << 30, "positions of the cache; 0: keys"),
    choice<&FlashProblem::type, kFloatTypes>("type", "of q and out").specializes(),
    choice<&FlashProblem::cache, kCacheTypes>("cache", "type of k and v").specializes(),
    flag<&FlashProblem::causal>("causal", "query i attends keys to i + keys - queries")
        .specializes(),
    number<&FlashProblem::window>("window", 0, 1u << 30, "last keys that count; 0: all"),
    flag<&FlashProblem::shared_cache>("shared_cache", "all rows use the same k and v")
        .specializes(),
    flag<&FlashProblem::tokens_first>("tokens_first", "q and out as [row][query][head]")
        .specializes(),
    flag<&FlashProblem::precise>("precise", "precise exp2 and division").specializes(),
    flag<&FlashProblem::variable>("variable", "lengths of each row, in device memory")
        .specializes(),
    number<&FlashProblem::page>("page", 0, 1u << 20, "positions of a page; 0: no pages")
        .specializes(),
    number<&FlashProblem::pages>("pages", 0, 1u << 30, "pages of k and v")};
inline constexpr std::size_t kFlashParametersInMemory = 3;

/// A row of the problem as one of K, which has a member `problem`.
template <class K, std::size_t kIndex>
constexpr ParameterRow<K> flash_row() {
  ParameterRow<K> row{
      kFlashParameters[kIndex].info,
      [](const K& spec) { return kFlashParameters[kIndex].get(spec.problem); },
      [](K& spec, std::uint64_t value) { kFlashParameters[kIndex].set(spec.problem, value); }};
  row.info.default_value = row.get(K{});
  return row;
}
template <class K, std::size_t... kIndex, class... More>
constexpr auto flash_rows(std::index_sequence<kIndex...>, const More&... more) {
  return std::array{flash_row<K, kIndex>()..., more...};
}
/// The first `kCount` of the family, then the kernel's own.
template <class K, std::size_t kCount = kFlashParameters.size(), class... More>
constexpr auto flash_parameters(const More&... more) {
  return flash_rows<K>(std::make_index_sequence<kCount>(), more...);
}

/// A number of the launch that the code takes.
template <class K, class F>
constexpr ArgumentRow<K> flash_number(std::string_view name, std::string_view doc, F of) {
  ArgumentRow<K> row;
  row.info.name = name;
  row.info.role = ArgumentRole::Shape;
  row.info.doc = doc;
  row.info.scalar = ptx::Type::u32;
  row.bits = of;
  return row;
}

/// The arguments that all kernels have, in the order of the PTX parameters.
template <class K>
constexpr auto flash_arguments() {
  using Row = ArgumentRow<K>;
  using O = FlashOperands;
  constexpr auto type = [](auto of) { return OperandType<K>(of); };
  constexpr auto of_q = [](const K& spec) { return spec.problem.type; };
  constexpr auto of_k = [](const K& spec) { return spec.problem.cache; };
  constexpr auto q_values = [](const K& spec) { return spec.problem.query_values(); };
  constexpr auto k_values = [](const K& spec) { return spec.problem.cache_values(); };
  constexpr auto rows = [](const K& spec) { return std::uint64_t{spec.problem.rows}; };
  constexpr auto entries = [](const K& spec) {
    return std::uint64_t{spec.problem.rows} * spec.problem.table_width();
  };
  constexpr auto variable = [](const K& spec) { return spec.problem.variable; };
  constexpr auto paged = [](const K& spec) { return spec.problem.page != 0; };
  constexpr auto wide = [](const K&) -> std::uint32_t { return 16; };
  constexpr auto of_cache = [](const K& spec) -> std::uint32_t {
    return spec.problem.cache == ElementType::q8_0 ? 2 : 16;
  };
  return std::array{
      Row::input("q", &O::q, type(of_q), q_values, "queries").aligned(wide),
      Row::input("k", &O::k, type(of_k), k_values, "keys").aligned(of_cache),
      Row::input("v", &O::v, type(of_k), k_values, "values").aligned(of_cache),
      Row::input("key_lengths", &O::key_lengths, ElementType::u32, rows,
                 "keys of each row; more than `keys` counts as `keys`")
          .only_if(variable)
          .values(0, 200),
      Row::input("query_lengths", &O::query_lengths, ElementType::u32, rows,
                 "queries of each row; more than `queries` counts as `queries`")
          .only_if(variable)
          .values(0, 100),
      Row::input("table", &O::table, ElementType::u32, entries, "page of each `page` positions")
          .only_if(paged)
          .values(0, 16),
      Row::output("out", &O::out, type(of_q), q_values, "weighted means of the values")
          .aligned(wide),
      flash_number<K>("queries", "the parameter of that name",
                      [](const K& spec, const O&) { return std::uint64_t{spec.problem.queries}; }),
      flash_number<K>("keys", "the parameter of that name",
                      [](const K& spec, const O&) { return std::uint64_t{spec.problem.keys}; }),
      flash_number<K>(
          "max_seq", "positions of the cache",
          [](const K& spec, const O&) { return std::uint64_t{spec.problem.positions()}; }),
      // Without a window one that is longer than any row.
      flash_number<K>("window", "last keys that count",
                      [](const K& spec, const O&) {
                        const std::uint32_t window = spec.problem.window;
                        return std::uint64_t{window == 0 ? 0x7fffffffu : window};
                      }),
      flash_number<K>("pages", "the parameter of that name",
                      [](const K& spec, const O&) { return std::uint64_t{spec.problem.pages}; }),
      Row::template scalar<&O::scale>("scale", "of the scores; 0: 1 / sqrt(head_size)")
          .values(0.05, 0.3)};
}

/// The same, then the kernel's own.
template <class K, std::size_t kMore>
constexpr auto flash_arguments(const std::array<ArgumentRow<K>, kMore>& more) {
  constexpr auto kRows = flash_arguments<K>();
  std::array<ArgumentRow<K>, kRows.size() + kMore> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i < kRows.size() ? kRows[i] : more[i - kRows.size()];
  }
  return all;
}

/// Throws `Error` (Stage::Build, "bad-parameter") for values that do not go together.
void check_flash(const FlashProblem& problem, std::string_view kernel);
/// Throws `Error` (Stage::Launch, "arguments") for a negative scale, and for pages of no positions
/// or none of some.
void check_flash_operands(const FlashProblem& problem, const FlashOperands& operands,
                          std::string_view kernel);
/// What the problem adds to a module's key; the kernel's own choices are `plan`.
[[nodiscard]] KernelKey flash_key(const FlashProblem& problem, std::uint64_t plan) noexcept;
/// q and out once; k and v of the keys that the queries attend, once.
[[nodiscard]] KernelCost flash_cost(const FlashProblem& problem) noexcept;

/// How errors grow, in roundings of 2^-24: of scores per sum of absolute products, of the sums over
/// keys per sum of absolute terms; and what each weight may be off at least, which is absolute.
struct FlashRoundings {
  double score = 0;
  double sum = 0;
  double weight = 0;
};
/// fp64. `magnitude` of the output is the number of roundings times what they are relative to.
void flash_reference(const FlashProblem& problem, const FlashRoundings& roundings,
                     HostOperands& host);

}  // namespace detail

}  // namespace ptxgen::inline v0
