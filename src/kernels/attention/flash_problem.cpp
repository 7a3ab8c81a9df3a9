// src/kernels/attention/flash_problem.cpp - attention of many queries: validity, cost, reference
#include "ptxgen/kernels/attention/flash_problem.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

[[noreturn]] void refuse(std::string_view kernel, Stage stage, const char* code,
                         std::string message) {
  Error error(stage, code, std::move(message));
  error.kernel = kernel;
  throw error.refresh();
}

/// The keys [begin, end) that a query attends.
struct Range {
  std::size_t begin = 0, end = 0;
};

Range range_of(const FlashProblem& p, std::uint64_t query, std::uint64_t queries,
               std::uint64_t keys) {
  if (query >= queries) return {};
  if (!p.causal) return {0, keys};
  const std::size_t end = query + 1 + keys < queries ? 0 : query + 1 + keys - queries;
  return {p.window == 0 || p.window > end ? 0 : end - p.window, end};
}

/// One query in fp64: its scores, then its outputs.
class ReferenceQuery {
 public:
  ReferenceQuery(const FlashProblem& p, const HostOperands& host, std::uint64_t row,
                 std::uint64_t head)
      : p_(p), host_(host), row_(row), kv_head_(head / p.group) {
    const double passed = host.number("scale");
    scale_ = passed == 0 ? 1 / std::sqrt(static_cast<double>(p.head_size)) : passed;
  }

  void attend(const Range& range, const double* q, const detail::FlashRoundings& roundings,
              double* y, double* magnitude) {
    score(range, q);
    double sum = 0;
    const std::size_t d = p_.head_size;
    std::vector<double> absolute(d);
    for (std::size_t j = range.begin; j < range.end; ++j) {
      const double power =
          largest_ == -INFINITY ? 0 : std::exp(scores_[j - range.begin] - largest_);
      sum += power;
      const double* const v = host_.input("v").data() + place(j);
      for (std::size_t e = 0; e < d; ++e) {
        y[e] += power * v[e];
        magnitude[e] += std::abs(power * v[e]);
        absolute[e] += std::abs(v[e]);
      }
    }
    for (std::size_t e = 0; e < d && sum != 0; ++e) {
      y[e] /= sum;
      magnitude[e] *= (2 * roundings.score * products_ + roundings.sum) / sum;
      magnitude[e] += roundings.weight * absolute[e] / sum;
    }
  }

 private:
  void score(const Range& range, const double* q) {
    scores_.assign(range.end - range.begin, 0);
    largest_ = -INFINITY;
    products_ = 0;
    for (std::size_t j = range.begin; j < range.end; ++j) {
      const double* const k = host_.input("k").data() + place(j);
      double score = 0;
      double absolute = 0;
      for (std::size_t e = 0; e < p_.head_size; ++e) {
        score += q[e] * k[e];
        absolute += std::abs(q[e] * k[e]);
      }
      scores_[j - range.begin] = score * scale_;
      largest_ = std::max(largest_, score * scale_);
      products_ = std::max(products_, absolute * scale_);
    }
  }
  // Of key j in k and v.
  [[nodiscard]] std::size_t place(std::size_t j) const {
    if (p_.page == 0) {
      const std::size_t strip = (p_.shared_cache ? 0 : row_) * p_.kv_heads + kv_head_;
      return (strip * p_.positions() + j) * p_.head_size;
    }
    const double entry = host_.input("table")[row_ * p_.table_width() + j / p_.page];
    const std::size_t page = std::min(static_cast<std::size_t>(entry), std::size_t{p_.pages} - 1);
    return ((page * p_.kv_heads + kv_head_) * p_.page + j % p_.page) * p_.head_size;
  }

  const FlashProblem& p_;
  const HostOperands& host_;
  std::uint64_t row_, kv_head_;
  double scale_ = 1;
  std::vector<double> scores_;
  double largest_ = 0, products_ = 0;  ///< largest sum of absolute products, scaled
};

}  // namespace

namespace detail {

void check_flash(const FlashProblem& p, std::string_view kernel) {
  const auto demand = [&](bool holds, std::string_view text, std::uint64_t value,
                          std::string_view rule) {
    if (holds) return;
    refuse(kernel, Stage::Build, "bad-parameter", format_text("{} is {}; {}", text, value, rule));
  };
  demand(p.keys <= p.positions(), "max_seq", p.max_seq,
         "it may be 0, or at least `keys`: the cache holds all of them");
  demand(p.window == 0 || p.causal, "window", p.window,
         "it counts back from the last key of `causal`: set causal, or leave it 0");
  demand(p.cache != ElementType::q8_0 || p.head_size % 32 == 0, "head_size", p.head_size,
         "with a cache of q8_0, whose blocks have 32 values, it is a multiple of 32");
  demand(p.page == 0 || std::has_single_bit(p.page), "page", p.page,
         "it may be 0 or a power of two");
  demand((p.page == 0) == (p.pages == 0), "pages", p.pages,
         "it is 0 exactly if `page` is: the pages that k and v have");
  demand(p.page == 0 || !p.shared_cache, "page", p.page,
         "with a shared_cache it is 0: rows of the table may have the same pages");
}

void check_flash_operands(const FlashOperands& operands, std::string_view kernel) {
  if (operands.scale >= 0) return;
  refuse(
      kernel, Stage::Launch, "arguments",
      format_text("scale is {}; it may be positive, or 0 for 1 / sqrt(head_size)", operands.scale));
}

KernelKey flash_key(const FlashProblem& p, std::uint64_t plan) noexcept {
  const auto bit = [](bool flag, unsigned place) { return (flag ? 1u : 0u) << place; };
  KernelKey key;
  key.values = {p.group,
                p.head_size,
                static_cast<std::uint64_t>(p.type),
                static_cast<std::uint64_t>(p.cache),
                bit(p.causal, 0) | bit(p.variable, 1) | bit(p.shared_cache, 2) |
                    bit(p.tokens_first, 3) | bit(p.precise, 4),
                p.page};
  key.plan = plan;
  return key;
}

KernelCost flash_cost(const FlashProblem& p) noexcept {
  const std::uint64_t q = p.query_values() * bytes(p.type);
  // Products of a query and a key: of the query numbered i, those up to its range's end.
  const std::uint64_t each = p.causal ? std::min<std::uint64_t>(p.queries, p.keys) : 0;
  std::uint64_t pairs = std::uint64_t{p.queries} * p.keys;
  if (p.causal) {
    // The last `each` queries attend keys - each + 1 to keys of them, the others none.
    pairs = each * (2 * std::uint64_t{p.keys} - each + 1) / 2;
    if (p.window != 0 && p.window < p.keys) {
      pairs = 0;
      const std::uint64_t first = p.keys - each + 1;  // keys of the first of them
      const std::uint64_t short_ones = first < p.window ? std::min(each, p.window - first) : 0;
      pairs = short_ones * (2 * first + short_ones - 1) / 2 + (each - short_ones) * p.window;
    }
  }
  std::uint64_t keys = p.keys;
  if (p.window != 0) keys = std::min<std::uint64_t>(keys, each + p.window - 1);
  const std::uint64_t cache =
      std::uint64_t{p.shared_cache ? 1 : p.rows} * p.kv_heads * keys * bytes(p.cache, p.head_size);
  const std::uint64_t lengths = p.variable ? std::uint64_t{8} * p.rows : 0;
  const std::uint64_t table = std::uint64_t{4} * p.rows * p.table_width();
  return {.bytes_read = q + 2 * cache + lengths + table,
          .bytes_written = q,
          .flops = 4 * p.rows * p.heads() * pairs * p.head_size};
}

void flash_reference(const FlashProblem& p, const FlashRoundings& roundings, HostOperands& host) {
  HostOperands::Operand& out = host["out"];
  out.values.assign(out.values.size(), 0);
  out.magnitude.assign(out.values.size(), 0);
  const std::uint64_t heads = p.heads();
  const auto length = [&](std::string_view name, std::uint64_t row, std::uint32_t limit) {
    if (!p.variable) return std::uint64_t{limit};
    return static_cast<std::uint64_t>(std::min<double>(host.input(name)[row], limit));
  };
  for (std::uint64_t row = 0; row < p.rows; ++row) {
    const std::uint64_t keys = length("key_lengths", row, p.keys);
    const std::uint64_t queries = length("query_lengths", row, p.queries);
    for (std::uint64_t head = 0; head < heads; ++head) {
      ReferenceQuery reference(p, host, row, head);
      for (std::uint64_t i = 0; i < p.queries; ++i) {
        const std::uint64_t token = row * p.queries + i;
        const std::uint64_t vector =
            p.tokens_first ? token * heads + head : (row * heads + head) * p.queries + i;
        const std::uint64_t at = vector * p.head_size;
        reference.attend(range_of(p, i, queries, keys), host.input("q").data() + at, roundings,
                         out.values.data() + at, out.magnitude.data() + at);
      }
    }
  }
}

}  // namespace detail

}  // namespace ptxgen::inline v0
