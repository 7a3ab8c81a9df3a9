// tests/kernels/structure_test.cpp - the emitted kernels, through the IR of their text
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>

#include "ptxgen/analysis.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "support/served_target.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;

namespace {

// The kernel as a reader of its text sees it.
struct Emitted {
  explicit Emitted(std::string_view name, std::string_view target_name = "sm_89") {
    const KernelDescription* entry = find_kernel(name);
    REQUIRE(entry != nullptr);
    std::vector<std::uint64_t> values;
    for (const ParameterInfo& parameter : entry->parameters)
      values.push_back(parameter.default_value);
    module = parse(print(entry->build(values, test::served_target(*entry, target_name))));
    REQUIRE(module.functions.size() == 1);
  }
  [[nodiscard]] const Function& function() const { return module.functions[0]; }

  [[nodiscard]] std::vector<std::size_t> with(std::string_view mnemonic,
                                              Space space = Space::Generic) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < function().body.size(); ++i) {
      const Instruction& s = function().body[i];
      if (s.kind != StatementKind::Instruction || info(s.op).mnemonic != mnemonic) continue;
      if (space != Space::Generic && space_of(s.get(Field::Space)) != space) continue;
      found.push_back(i);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::size_t> barriers() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < function().body.size(); ++i) {
      const Instruction& s = function().body[i];
      if (s.kind == StatementKind::Instruction && has(info(s.op).flags, Flag::Barrier))
        found.push_back(i);
    }
    return found;
  }
  // The address operand of a load or store.
  [[nodiscard]] const Operand& address(std::size_t statement) const {
    for (const Operand& o : function().operands_of(function().body[statement])) {
      if (o.kind == OperandKind::Memory) return o;
    }
    FAIL("statement without an address");
    return function().operands[0];
  }

  Module module;
};

// What the analyses say of the one function of a module.
struct Facts {
  explicit Facts(const Module& module)
      : function(module.functions[0]),
        cfg(function),
        index(function),
        uniformity(module, function, cfg, index),
        strides(function, index, uniformity) {}

  // The branches that decide whether control reaches a statement.
  [[nodiscard]] std::vector<std::uint32_t> deciders(std::size_t statement) const {
    return cfg.deciders(cfg.block_of(static_cast<std::uint32_t>(statement)));
  }
  // Whether threads of a block may disagree about that.
  [[nodiscard]] bool decided_by_thread(std::size_t statement) const {
    const auto barriers = analysis::divergent_barriers(function, cfg, index, uniformity);
    return std::any_of(barriers.begin(), barriers.end(),
                       [&](const auto& barrier) { return barrier.statement == statement; });
  }

  const Function& function;
  analysis::Cfg cfg;
  analysis::RegisterIndex index;
  analysis::Uniformity uniformity;
  analysis::LaneStrides strides;
};

std::vector<std::string> parameters(const Emitted& emitted) {
  std::vector<std::string> list;
  for (const Variable& v : emitted.function().parameters) {
    list.push_back(std::string(emitted.module.text(v.name)) + "." + std::string(name(v.type)));
  }
  return list;
}

}  // namespace

namespace {

// "u64" for memory, "b8" for 128 bytes of a tensor map, else the type of the number.
std::vector<std::string> described_types(const KernelDescription& kernel) {
  std::vector<std::string> types;
  for (const ArgumentInfo& argument : kernel.arguments) {
    if (argument.role == ArgumentRole::Promise) continue;
    types.emplace_back(argument.role == ArgumentRole::TensorMap ? "b8"
                       : argument.scalar == Type::none          ? "u64"
                                                                : name(argument.scalar));
  }
  return types;
}

}  // namespace

TEST_CASE("one entry, named as the kernel, with the parameters that the description lists") {
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    const Emitted emitted(kernel.name);
    CHECK(emitted.function().entry);
    CHECK(emitted.function().linkage == Linkage::Visible);
    // The family of matrix products is served by kernels with names of their own.
    const std::string_view name = kernel.name == "gemm" ? "gemm_mma" : kernel.name;
    CHECK(emitted.module.text(emitted.function().name) == name);
    CHECK(verify(emitted.module).empty());
    std::vector<std::string> types;
    for (const std::string& parameter : parameters(emitted)) {
      types.push_back(parameter.substr(parameter.find('.') + 1));
    }
    CHECK(types == described_types(kernel));
  }
  CHECK(parameters(Emitted("fma_rpt")) ==
        std::vector<std::string>{"in.u64", "out.u64", "n.s32", "k.s32", "a.f32", "b.f32"});
}

TEST_CASE("the target and the lowest version are stated") {
  for (const KernelDescription& entry : catalog()) {
    for (const Target& row : targets()) {
      if (!entry.serves(row)) continue;
      const Emitted emitted(entry.name, row.name);
      CHECK(emitted.module.target == row.name);
      // The oldest PTX that the target knows is enough, but for cache operators (7.4) in the
      // planned GEMV and tanh.approx (7.0).
      const bool planned =
          entry.name == "gemv" || entry.name == "batched_gemv" || entry.name == "gemv_group";
      // On tensor cores: ldmatrix (6.5), from sm_80 on cache operators of cp.async.
      const bool tensor_cores = entry.name == "gemm" || entry.name == "gemm_mma";
      const bool attention = entry.name == "flash_attention_tensor_core";
      const Version needed = (tensor_cores || attention) && row.sm < 80 ? Version{6, 5}
                             : tensor_cores                             ? Version{7, 4}
                             : planned                                  ? Version{7, 4}
                             : entry.name == "gelu_tanh"                ? Version{7, 0}
                                                                        : Version{};
      CHECK(emitted.module.version == (row.version < needed ? needed : row.version));
    }
  }
  CHECK(Emitted("gemv_coalesced", "sm_89").module.version == Version{7, 8});
  CHECK(Emitted("gemv_coalesced", "sm_75").module.version == Version{6, 3});
}

TEST_CASE("gemv_coalesced declares 1024 bytes of shared memory, whatever k is") {
  const Emitted emitted("gemv_coalesced");
  std::uint64_t shared = 0;
  std::size_t arrays = 0;
  for (const auto* list : {&emitted.module.variables, &emitted.function().variables}) {
    for (const Variable& v : *list) {
      if (v.space != Space::Shared) continue;
      ++arrays;
      shared += size_in_bytes(v);
      CHECK(natural_alignment(v) >= 4);
    }
  }
  CHECK(arrays == 1);
  CHECK(shared == 1024);
  CHECK(GemvCoalesced{9000, 17}.geometry().dynamic_shared_bytes == 0);
}

TEST_CASE("shared memory is addressed with 32 bits") {
  const Emitted emitted("gemv_coalesced");
  std::size_t accesses = 0;
  for (const std::string_view mnemonic : {"ld", "st"}) {
    for (const std::size_t i : emitted.with(mnemonic, Space::Shared)) {
      const Operand& address = emitted.address(i);
      REQUIRE(address.base == OperandKind::Register);
      CHECK(bits(emitted.function().type_of({{address.id}, address.index})) == 32);
      ++accesses;
    }
  }
  CHECK(accesses >= 2);
}

TEST_CASE("no condition that depends on the thread decides whether a barrier is reached") {
  for (const KernelDescription& entry : catalog()) {
    // Its warps have roles; the gate barrier_safety knows them.
    if (entry.name.ends_with("_wgmma")) continue;
    const Emitted emitted(entry.name);
    const Facts facts(emitted.module);
    std::size_t barriers = 0;
    std::size_t conditional = 0;
    for (const std::size_t barrier : emitted.barriers()) {
      INFO(entry.name << ": "
                      << print(emitted.module, emitted.function(),
                               emitted.function().body[barrier]));
      if (info(emitted.function().body[barrier].op).mnemonic == "bar") {
        CHECK_FALSE(facts.decided_by_thread(barrier));
        ++barriers;
        conditional += facts.deciders(barrier).empty() ? 0 : 1;
      }
    }
    // Each of these kernels has a loop or a branch around one.
    CHECK((barriers == 0 || conditional > 0));
  }
  CHECK(Emitted("gemv_coalesced").with("bar").size() == 2);
  CHECK(Emitted("gemv_strided").with("bar").empty());
}

TEST_CASE("the analysis of barriers finds the early exit that it is there for") {
  // gemv_coalesced as the original design had it: columns out of range leave before the barrier.
  const Module bad = parse(R"(.version 7.8
.target sm_89
.address_size 64
.visible .entry k(.param .u32 n)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  bar.sync 0;
DONE:
  ret;
}
)");
  const Facts divergent(bad);
  CHECK(divergent.decided_by_thread(4));
  // The same with a condition that all threads share.
  const Module good = parse(R"(.version 7.8
.target sm_89
.address_size 64
.visible .entry k(.param .u32 n)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [n];
  setp.ge.u32 %p1, %r1, 7;
  @%p1 bra DONE;
  bar.sync 0;
DONE:
  ret;
}
)");
  const Facts together(good);
  CHECK_FALSE(together.decided_by_thread(3));
  CHECK(together.deciders(3).size() == 1);
}

TEST_CASE("the inner loops of the GEMVs are fused multiply-adds, rounded to nearest even") {
  for (const std::string_view kernel : {"gemv_coalesced", "gemv_strided", "fma_rpt"}) {
    const Emitted emitted(kernel);
    const Facts facts(emitted.module);
    std::size_t innermost = 0;
    std::set<std::size_t> fma_counts;
    for (std::uint32_t l = 0; l < facts.cfg.loops().loops().size(); ++l) {
      const auto loops = facts.cfg.loops().loops();
      if (std::any_of(loops.begin(), loops.end(),
                      [&](const analysis::Loop& other) { return other.parent == l; }))
        continue;
      ++innermost;
      std::size_t fused = 0;
      for (std::uint32_t i = 0; i < emitted.function().body.size(); ++i) {
        const Instruction& s = emitted.function().body[i];
        if (s.kind != StatementKind::Instruction ||
            !facts.cfg.loops().contains(l, facts.cfg.block_of(i)))
          continue;
        const bool floating = kind(s.type()) == TypeKind::Float;
        if (s.is(Op::fma_f32)) {
          ++fused;
          CHECK(s.get(Field::Rounding) == Modifier::rn);
          CHECK_FALSE(s.has(Field::FlushToZero));
        } else if (floating) {
          // No separate multiplication or addition beside them.
          CHECK(info(s.op).mnemonic != "mul");
          CHECK(info(s.op).mnemonic != "add");
        }
      }
      INFO(kernel);
      fma_counts.insert(fused);
    }
    if (kernel == "fma_rpt") {
      // Four chains or one, unrolled or not.
      CHECK(fma_counts == std::set<std::size_t>{1, 4, 16, 64});
    } else {
      CHECK_FALSE(fma_counts.empty());
      for (const std::size_t count : fma_counts) CHECK((count == 1 || count == 4));
    }
    CHECK(innermost > 0);
  }
}

TEST_CASE("loops are tested at the bottom: no backward branch is unconditional") {
  for (const KernelDescription& entry : catalog()) {
    const Emitted emitted(entry.name);
    std::set<std::uint32_t> placed;
    for (const Instruction& s : emitted.function().body) {
      if (s.kind == StatementKind::Label) placed.insert(emitted.function().operands_of(s)[0].id);
      if (s.kind != StatementKind::Instruction || info(s.op).mnemonic != "bra") continue;
      const bool backward = placed.count(emitted.function().operands_of(s)[0].id) != 0;
      if (backward) CHECK(s.guard.present());
    }
  }
}

TEST_CASE("consecutive lanes of the coalesced kernels are on consecutive elements") {
  for (const std::string_view kernel : {"gemv_coalesced", "vadd", "copy", "fma_rpt"}) {
    const Emitted emitted(kernel);
    const Facts facts(emitted.module);
    std::size_t accesses = 0;
    for (const std::string_view mnemonic : {"ld", "st"}) {
      for (const std::size_t i : emitted.with(mnemonic, Space::Global)) {
        INFO(kernel << ": "
                    << print(emitted.module, emitted.function(), emitted.function().body[i]));
        const Instruction& access = emitted.function().body[i];
        const std::int64_t elements = access.get(Field::Vector) == Modifier::v4 ? 4 : 1;
        CHECK(facts.strides.of(emitted.address(i)) ==
              std::optional<std::int64_t>(elements * bytes(access.type())));
        ++accesses;
      }
    }
    CHECK(accesses >= 2);
  }
}

TEST_CASE("the shared tile is written lane by lane and read as a broadcast") {
  const Emitted emitted("gemv_coalesced");
  const Facts facts(emitted.module);
  for (const std::size_t i : emitted.with("st", Space::Shared)) {
    CHECK(facts.strides.of(emitted.address(i)) == std::optional<std::int64_t>(4));
  }
  for (const std::size_t i : emitted.with("ld", Space::Shared)) {
    CHECK(facts.strides.of(emitted.address(i)) == std::optional<std::int64_t>(0));
  }
}

TEST_CASE("the strided GEMV is strided: lanes are a row apart") {
  const Emitted emitted("gemv_strided");
  const Facts facts(emitted.module);
  std::size_t strided = 0;
  for (const std::size_t i : emitted.with("ld", Space::Global)) {
    strided += facts.strides.of(emitted.address(i)) == std::nullopt ? 1u : 0u;
  }
  CHECK(strided == 1);
  CHECK(emitted.with("shfl").size() == 5);
}

TEST_CASE("x is read under a predicate, with zero beyond its end") {
  const Emitted emitted("gemv_coalesced");
  std::size_t guarded = 0;
  for (const std::size_t i : emitted.with("ld", Space::Global)) {
    const Instruction& load = emitted.function().body[i];
    if (!load.guard.present()) continue;
    ++guarded;
    // The default is in the same register before the load.
    const Instruction& before = emitted.function().body[i - 1];
    CHECK(info(before.op).mnemonic == "mov");
    CHECK(emitted.function().operands_of(before)[0] == emitted.function().operands_of(load)[0]);
    CHECK(emitted.function().operands_of(before)[1].value == 0);
  }
  CHECK(guarded == 1);
}
