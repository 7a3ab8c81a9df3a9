// src/kernels/gemm/wmma.cpp - a matrix product by wmma
#include "ptxgen/kernels/gemm/wmma.hpp"

#include <bit>

#include "kernels/gemm/emit.hpp"
#include "kernels/parts/products.hpp"
#include "kernels/parts/refusal.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kFragment = 16;

unsigned log2_of(std::uint32_t power) { return static_cast<unsigned>(std::bit_width(power) - 1); }

using Words = std::vector<Value<b32>>;

/// The code of one kernel.
class WmmaEmitter {
 public:
  WmmaEmitter(const GemmWmma& kernel, gemm::Kit& kit)
      : k_(kit.k),
        kit_(kit),
        p_(kernel.problem),
        size_(kernel.tile),
        threads_(kernel.threads()),
        left_(k_.shared<b16>(std::uint64_t{2} * size_ * size_, "tiles", 32)),
        right_(left_ + size_ * size_),
        first_(k_.mul_lo(k_.ctaid_x(), size_)),
        warp_(k_.tid_x() >> 5u) {}

  void emit() {
    const Value<u32> begin = k_.mul_lo(k_.ctaid_y(), size_);
    const Value<u32> step = k_.mul_lo(k_.nctaid_y(), size_);
    k_.for_(begin, kit_.m, step, [&](Value<u32> top) { emit_tile(top); });
  }

 private:
  [[nodiscard]] ptx::Modifier type() const { return ptx::as_modifier(info(p_.type).type); }
  [[nodiscard]] ptx::Modifier order_a() const {
    return p_.transpose_a ? ptx::Modifier::col : ptx::Modifier::row;
  }
  [[nodiscard]] ptx::Modifier order_b() const {
    return p_.transpose_b ? ptx::Modifier::col : ptx::Modifier::row;
  }

  // A tile as it is stored: rows from `row` of `rows`, columns from `column` of `columns`.
  void copy(const Ptr<b16, Shared>& to, const Ptr<b8>& matrix, std::uint64_t pitch,
            const Value<u32>& row, const Value<u32>& rows, const Value<u32>& column,
            const Value<u32>& columns) {
    const Value<u32> thread = k_.tid_x();
    const Value<u32> y = thread >> log2_of(size_);
    const Value<u32> x = thread & (size_ - 1);
    const Value<u32> j = column + x;
    const Pred in_columns = j < columns;
    const Ptr<b16, Shared> place = to + thread;
    std::vector<Value<u32>> loaded;
    for (std::uint32_t pass = 0; pass < size_ * size_ / threads_; ++pass) {
      const std::uint32_t down = pass * (threads_ / size_);
      const Value<u32> i = row + (down == 0 ? y : y + down);
      const Pred inside = in_columns & (i < rows);
      const Ptr<b8> from =
          gemm::moved(k_, gemm::moved(k_, matrix, i, pitch * bytes(p_.type)), j, bytes(p_.type));
      loaded.push_back(load_floats_if(k_, from, p_.type, 1, inside).pairs[0]);
    }
    for (std::uint32_t pass = 0; pass < loaded.size(); ++pass) {
      k_.st((place + pass * threads_).cast<u16>(), k_.cvt<u16>(loaded[pass]));
    }
  }

  // Registers of a fragment a or b, loaded from the tile.
  [[nodiscard]] Words fragment(bool is_a, const Ptr<b16, Shared>& from) {
    const bool half = p_.type == ElementType::f16;
    Words words;
    std::vector<Operand> list;
    for (std::uint32_t i = 0; i < (half ? 8u : 4u); ++i) words.push_back(k_.undefined<b32>());
    for (const Value<b32>& word : words) list.emplace_back(word);
    const ptx::Op op =
        is_a ? (half ? ptx::Op::wmma_load_a_f16 : ptx::Op::wmma_load_a_m16n16k16_bf16)
             : (half ? ptx::Op::wmma_load_b_f16 : ptx::Op::wmma_load_b_m16n16k16_bf16);
    const ptx::Modifier modifiers[] = {is_a ? order_a() : order_b(), ptx::Modifier::m16n16k16,
                                       ptx::Modifier::shared, type()};
    const Vec vector{std::span<const Operand>(list)};
    const Operand operands[] = {vector, from, size_};
    k_.emit(op, modifiers, operands);
    return words;
  }

  void multiply(std::vector<Var<f32>>& sums, const Words& a, const Words& b) {
    const auto list = [](const auto& values) {
      std::vector<Operand> operands;
      for (const auto& value : values) operands.emplace_back(value);
      return operands;
    };
    const std::vector<Operand> d = list(sums), left = list(a), right = list(b);
    const Vec d_vector{std::span<const Operand>(d)};
    const Vec a_vector{std::span<const Operand>(left)};
    const Vec b_vector{std::span<const Operand>(right)};
    const ptx::Modifier modifiers[] = {order_a(), order_b(), ptx::Modifier::m16n16k16};
    const Operand operands[] = {d_vector, a_vector, b_vector, d_vector};
    k_.emit(
        p_.type == ElementType::f16 ? ptx::Op::wmma_mma_f32_f32 : ptx::Op::wmma_mma_m16n16k16_bf16,
        modifiers, operands);
  }

  void emit_tile(const Value<u32>& top) {
    const std::uint32_t across = size_ / kFragment;
    const Value<u32> row = (warp_ >> log2_of(across)) << 4u;
    const Value<u32> column = (warp_ & (across - 1)) << 4u;
    // The first elements of the warp's fragments.
    const Ptr<b16, Shared> a = left_ + (p_.transpose_a ? row : k_.mul_lo(row, size_));
    const Ptr<b16, Shared> b = right_ + (p_.transpose_b ? k_.mul_lo(column, size_) : column);
    const Value<u32> n = k_.constant<u32>(p_.n);
    const Value<u32> terms = k_.constant<u32>(p_.k);
    std::vector<Var<f32>> sums;
    for (int i = 0; i < 8; ++i) sums.push_back(k_.var<f32>(0.0f));
    k_.for_(0u, p_.k, size_, [&](Value<u32> term) {
      if (p_.transpose_a) {
        copy(left_, kit_.a, p_.pitch_a(), term, terms, top, kit_.m);
      } else {
        copy(left_, kit_.a, p_.pitch_a(), top, kit_.m, term, terms);
      }
      if (p_.transpose_b) {
        copy(right_, kit_.b, p_.pitch_b(), first_, n, term, terms);
      } else {
        copy(right_, kit_.b, p_.pitch_b(), term, terms, first_, n);
      }
      k_.bar_sync();
      for (std::uint32_t i = 0; i < size_; i += kFragment) {
        const Words left = fragment(true, a + i * (p_.transpose_a ? size_ : 1));
        const Words right = fragment(false, b + i * (p_.transpose_b ? 1 : size_));
        multiply(sums, left, right);
      }
      k_.bar_sync();
    });
    // The outputs take the place of the tiles: no thread is in an iteration of the loop.
    k_.bar_sync();
    const Value<u32> first_column = first_ + column;
    store(sums, top + row, first_column);
    // The next tiles take the place of the outputs.
    k_.bar_sync();
  }

  // 16 x 16 outputs of the warp, in its own part of shared memory.
  void store(const std::vector<Var<f32>>& sums, const Value<u32>& row, const Value<u32>& column) {
    const Value<u32> before = k_.mul_lo(warp_, kFragment * kFragment);
    const Ptr<f32, Shared> own = left_.cast<f32>() + before;
    std::vector<Operand> list;
    for (const Var<f32>& sum : sums) list.emplace_back(sum);
    const Vec vector{std::span<const Operand>(list)};
    const ptx::Modifier modifiers[] = {ptx::Modifier::row, ptx::Modifier::m16n16k16,
                                       ptx::Modifier::shared};
    const Operand operands[] = {own, vector, kFragment};
    k_.emit(ptx::Op::wmma_store_f32, modifiers, operands);
    k_.bar_warp_sync();
    const Value<u32> lane = k_.tid_x() & 31u;
    k_.for_(lane, kFragment * kFragment, 32u, [&](Value<u32> place) {
      const Value<u32> i = row + (place >> 4u);
      const Value<u32> j = column + (place & 15u);
      const Pred in_rows = i < kit_.m;
      k_.if_(in_rows & (j < p_.n), [&] {
        const Value<f32> sum = k_.ld(own + place);
        gemm::store_outputs(kit_, i, j, {sum});
      });
    });
  }

  KernelBuilder& k_;
  gemm::Kit& kit_;
  const GemmProblem& p_;
  std::uint32_t size_, threads_;
  Ptr<b16, Shared> left_, right_;
  Value<u32> first_, warp_;
};

}  // namespace

void check(const GemmWmma& kernel, const ptx::Target& target) {
  const GemmProblem& p = kernel.problem;
  check(p);
  detail::refuse_eight_bits(p, kernel_name<GemmWmma>);
  if (p.type != ElementType::f16 && p.type != ElementType::bf16) {
    refuse_build(kernel_name<GemmWmma>, "bad-plan", nullptr,
                 format_text("type is {}; wmma multiplies f16 or bf16 here: take gemm_tiled "
                             "for {}",
                             to_string(p.type), to_string(p.type)));
  }
  if (p.type_b() != p.type) {
    refuse_build(kernel_name<GemmWmma>, "bad-plan", nullptr,
                 format_text("b is {} and type is {}; gemm_wmma does not convert: take "
                             "gemm_mma",
                             to_string(p.type_b()), to_string(p.type)));
  }
  if (p.type == ElementType::bf16 && target.sm < kAsyncSm) {
    refuse_build(
        kernel_name<GemmWmma>, "target-lacks", &target,
        format_text("type is bf16, which the tensor cores of {} do not have; they need sm_80 or "
                    "newer: take f16",
                    target.name));
  }
}

BuiltKernel GemmWmma::build(const ptx::Target& target) const {
  check(*this, target);
  KernelBuilder k(kernel_name<GemmWmma>, target.name);
  k.required_threads(threads());
  k.contract(Contract::Forbid);
  gemm::Kit kit = gemm::read_parameters(k, problem);
  WmmaEmitter(*this, kit).emit();
  return k.build();
}

LaunchGeometry GemmWmma::geometry() const {
  LaunchGeometry geometry = gemm::square_geometry(problem, tile);
  geometry.block = {threads(), 1, 1};
  return geometry;
}

KernelKey Describe<GemmWmma>::key(const K& spec) {
  return gemm::unaligned_key(spec.problem, spec.tile);
}

ErrorBound Describe<GemmWmma>::bound(const K& spec) {
  return detail::gemm_bound(spec.problem, tensor_core_error(spec.problem.k));
}

}  // namespace ptxgen::inline v0
