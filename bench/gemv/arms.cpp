// bench/gemv/arms.cpp - what is measured side by side
#include "bench/gemv/arms.hpp"

#include <algorithm>
#include <array>

#include "bench/gemv/nvrtc_gemv.hpp"
#include "cli_common/files.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/kernels/elementwise/read_stream.hpp"
#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/kernels/gemv/strided.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/runtime/assemble/nvrtc.hpp"
#include "ptxgen/runtime/module/compile.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/device/core.hpp"
#include "runtime/launch/cublas.hpp"
#include "support/count.hpp"

namespace ptxgen::gemv_bench {

namespace {

constexpr std::array<std::string_view, 7> kWords = {"cublas",    "nvrtc",   "roofline", "copy",
                                                    "coalesced", "strided", "variants"};

std::uint64_t output_bytes(const GemvProblem& problem) {
  return std::uint64_t{problem.n} * bytes(problem.y);
}
// Weights, x and y once: the minimum traffic of a product.
std::uint64_t product_bytes(const GemvProblem& problem) {
  const std::uint64_t weights = std::uint64_t{problem.k} * problem.n;
  return bytes(problem.weights, weights) + bytes(problem.x, problem.k) + output_bytes(problem);
}

Arm product(std::string name, const GemvProblem& problem) {
  Arm arm;
  arm.name = std::move(name);
  arm.slot_bytes = output_bytes(problem);
  arm.bytes = product_bytes(problem);
  return arm;
}

// Device memory filled with 0, with shared ownership.
std::shared_ptr<Buffer<b8>> zeros(const Context& context, std::uint64_t bytes) {
  auto buffer = std::make_shared<Buffer<b8>>(context, std::max<std::uint64_t>(bytes, 16));
  buffer->fill_bytes(0);
  return buffer;
}

template <class Spec>
Arm baseline(const Context& context, const Launcher& launcher, const char* name,
             const GemvProblem& problem, std::uint64_t roundings) {
  const Spec spec{problem.k, problem.n};
  const auto kernel = spec.build(context.device().target());
  const Function function = launcher.load(kernel.module(), kernel.name());
  const LaunchGeometry geometry = spec.geometry();
  Arm arm = product(name, problem);
  arm.detail =
      count_text(geometry.grid.x, "block") + " of " + count_text(geometry.block.x, "thread");
  arm.exactness = {roundings, false};
  arm.queue = [=](const ptxgen::Stream& stream, const ArmSite& at) {
    const auto block = Spec::KernelType::pack(DeviceAddress<f32>{at.y}, DeviceAddress<f32>{at.a},
                                              DeviceAddress<f32>{at.x}, problem.k, problem.n);
    function.launch(stream, geometry, {block.data(), block.size()});
  };
  return arm;
}

bool is_baseline_problem(const GemvProblem& problem) {
  return problem.layout == GemvLayout::T && problem.weights == ElementType::f32 &&
         problem.leading_dimension() == problem.n;
}

}  // namespace

std::string arm_words() {
  std::string text;
  for (const std::string_view word : kWords) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  }
  return text;
}

std::vector<std::string> arm_choice(const std::string& text) {
  std::vector<std::string> chosen;
  for (const std::string& word : split_list(text)) {
    if (word == "planned" || word == "none") continue;
    if (std::find(kWords.begin(), kWords.end(), word) == kWords.end()) {
      throw cli::UsageError("--with " + word +
                            ": there is no such thing to measure; there are: " + arm_words());
    }
    if (std::find(chosen.begin(), chosen.end(), word) == chosen.end()) chosen.push_back(word);
  }
  return chosen;
}

ArmMaker::ArmMaker(const Context& context, const Launcher& launcher, const Settings& settings)
    : context_(context),
      launcher_(launcher),
      settings_(settings),
      gpu_(gpu_of(context.device().info())) {}
ArmMaker::~ArmMaker() {
  if (cublas_ == nullptr) return;
  // Its handle belongs to the context, which must be current when it goes.
  const Current current(context_.core());
  cublas_.reset();
}

Arms ArmMaker::make(const GemvProblem& problem, const std::vector<std::string>& words) {
  Arms arms;
  const auto attempt = [&](const std::string& name, const auto& add) {
    try {
      add();
    } catch (const Error& error) {
      if (context_.poisoned()) throw;
      arms.missing.push_back({name, error.message});
    }
  };
  attempt("planned", [&] { arms.arms.push_back(plan_arm("planned", planned(problem))); });
  for (const std::string& word : words) {
    attempt(word, [&] { add_word(arms, problem, word); });
  }
  return arms;
}

void ArmMaker::add_word(Arms& arms, const GemvProblem& problem, const std::string& word) {
  // Neither of the two has weights in blocks.
  if (is_block_format(problem.weights) && (word == "cublas" || word == "nvrtc")) return;
  if (word == "cublas") return add_cublas(arms, problem);
  if (word == "nvrtc") return add_nvrtc(arms, problem);
  if (word == "variants") return add_variants(arms, problem);
  if (word == "roofline") return arms.arms.push_back(roofline_arm(matrix_bytes(problem)));
  if (word == "copy") return arms.arms.push_back(copy_arm(matrix_bytes(problem)));
  if (!is_baseline_problem(problem)) return;
  if (word == "coalesced") {
    arms.arms.push_back(baseline<GemvCoalesced>(context_, launcher_, "coalesced", problem,
                                                GemvCoalesced{problem.k, problem.n}.roundings()));
  } else {
    arms.arms.push_back(baseline<GemvStrided>(context_, launcher_, "strided", problem,
                                              GemvStrided{problem.k, problem.n}.roundings()));
  }
}

GemvPlan ArmMaker::planned(const GemvProblem& problem) { return plan_gemv(problem, gpu_); }

Arm ArmMaker::plan_arm(const std::string& name, const GemvPlan& plan) const {
  const Gemv spec{plan};
  const auto kernel = spec.build(context_.device().target());
  const Function function = launcher_.load(kernel.module(), kernel.name());
  const LaunchGeometry geometry = spec.geometry();
  function.allow(geometry);
  const auto workspace = zeros(context_, plan.workspace_bytes());
  Arm arm = product(name, plan.problem);
  arm.detail = to_text(plan);
  arm.exactness = {plan.roundings(), false};
  arm.plan = plan;
  arm.prediction = predict(plan, gpu_);
  const auto launch_as = [&](const LaunchGeometry& how) {
    return [=](const ptxgen::Stream& stream, const ArmSite& at) {
      const DeviceAddress<b8> none{0};
      const auto block = Gemv::KernelType::pack(
          DeviceAddress<b8>{at.y}, DeviceAddress<b8>{at.a}, DeviceAddress<b8>{at.x}, none, none,
          DeviceAddress<b8>{workspace->address().value}, 1.0f, 0.0f);
      function.launch(stream, how, {block.data(), block.size()});
    };
  };
  arm.queue = launch_as(geometry);
  if (geometry.programmatic) {
    LaunchGeometry alone = geometry;
    alone.programmatic = false;
    arm.queue_alone = launch_as(alone);
  }
  return arm;
}

void ArmMaker::add_cublas(Arms& arms, const GemvProblem& problem) {
  if (context_.device().info().kind == DeviceKind::Emulator) {
    throw Error(Stage::Launch, "no-cublas", "cuBLAS needs a GPU, and this device is emulated");
  }
  const Current current(context_.core(), Stage::Launch);
  if (cublas_ == nullptr) cublas_ = std::make_shared<const Cublas>(settings_);
  const auto add = [&](const char* name, Cublas::Way way) {
    Arm arm = product(name, problem);
    arm.detail = "cuBLAS " + cublas_->version();
    // Additions in any order, in the worst case sequential.
    arm.exactness = {std::max<std::uint64_t>(problem.k, 1), problem.y != ElementType::f32};
    arm.queue = [this, way, problem](const ptxgen::Stream& stream, const ArmSite& at) {
      const Current there(context_.core(), Stage::Launch);
      cublas_->product(way, stream.handle(), at.y, at.a, at.x, problem);
    };
    arms.arms.push_back(std::move(arm));
  };
  if (problem.weights == ElementType::f32) add("cublas-gemv", Cublas::Way::Gemv);
  add("cublas-gemm", Cublas::Way::Gemm);
}

std::string ArmMaker::cublas_version() const {
  return cublas_ == nullptr ? std::string() : cublas_->version();
}

void ArmMaker::add_nvrtc(Arms& arms, const GemvProblem& problem) {
  // The best plan without features that CUDA C++ lacks: a plan tuned for a ring would not suit it.
  std::vector<GemvCandidate> ranking = rank_gemv_plans(problem, gpu_);
  const auto plain = std::find_if(ranking.begin(), ranking.end(), [](const GemvCandidate& one) {
    return one.plan.path == GemvPath::Direct && one.plan.cluster == 1 && one.plan.chunk_steps == 0;
  });
  const GemvPlan plan = nvrtc_plan(plain == ranking.end() ? ranking.front().plan : plain->plan);
  arms.arms.push_back(nvrtc_arm(plan, false));
  // The cost of a fixed order of additions: only for split plans.
  if (plan.is_split() && problem.y == ElementType::f32) arms.arms.push_back(nvrtc_arm(plan, true));
}

Arm ArmMaker::nvrtc_arm(const GemvPlan& plan, bool atomic) {
  if (nvrtc_version_.empty()) nvrtc_version_ = Nvrtc(settings_).version();
  CudaOptions options;
  options.target = context_.device().info().target;
  options.nvrtc = nvrtc_options(plan, atomic);
  options.name = "gemv_nvrtc.cu";
  options.settings = settings_;
  const CudaProgram program = compile_cuda(nvrtc_gemv_source(), options);
  // Without passes, which would change the compiler's code.
  const Function function =
      ptxgen::Module::load(context_, program.ptx, {}, options.name).function(kNvrtcGemvEntry);
  LaunchGeometry geometry;
  geometry.grid = {plan.blocks, 1, 1};
  geometry.block = {plan.threads(), 1, 1};
  const auto parts = zeros(context_, nvrtc_parts_bytes(plan));
  const auto tickets = zeros(context_, plan.strips() * 4);
  Arm arm = product(atomic ? "nvrtc-atomic" : "nvrtc", plan.problem);
  arm.detail =
      "NVRTC " + nvrtc_version_ + ", " + to_text(plan) + (atomic ? ", parts by atomicAdd" : "");
  arm.exactness = {plan.roundings() + plan.max_parts(), false};
  if (atomic) arm.spoil = 0;
  arm.queue = [=](const ptxgen::Stream& stream, const ArmSite& at) {
    const std::array<std::uint64_t, 5> block = {at.y, at.a, at.x, parts->address().value,
                                                tickets->address().value};
    function.launch(stream, geometry, std::as_bytes(std::span(block)));
  };
  return arm;
}

void ArmMaker::add_variants(Arms& arms, const GemvProblem& problem) {
  for (const PlanVariant& variant : plan_variants(planned(problem), gpu_)) {
    try {
      arms.arms.push_back(plan_arm(variant.name, variant.plan));
    } catch (const Error& error) {
      if (context_.poisoned()) throw;
      arms.missing.push_back({variant.name, error.message});
    }
  }
}

Arm ArmMaker::roofline_arm(std::uint64_t bytes) const {
  ReadStream spec;
  spec.groups = bytes / 16;
  // Two blocks for each SM, but no block without work.
  const std::uint64_t useful =
      std::max<std::uint64_t>((spec.groups + spec.threads - 1) / spec.threads, 1);
  spec.blocks =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{gpu_.sms} * 2, useful));
  const auto kernel = spec.build(context_.device().target());
  const Function function = launcher_.load(kernel.module(), kernel.name());
  const LaunchGeometry geometry = spec.geometry();
  Arm arm;
  arm.name = "roofline";
  arm.detail = count_text(spec.blocks, "block") + " of " + count_text(spec.threads, "thread") +
               ", " + count_text(ReadStream::kUnroll, "load") + " of 16 B in flight";
  arm.result = Arm::Result::WordSums;
  arm.slot_bytes = std::uint64_t{4} * spec.warps();
  arm.bytes = bytes;
  arm.queue = [=](const ptxgen::Stream& stream, const ArmSite& at) {
    const auto block = ReadStream::KernelType::pack(DeviceAddress<b8>{at.a},
                                                    DeviceAddress<u32>{at.y}, spec.groups);
    function.launch(stream, geometry, {block.data(), block.size()});
  };
  return arm;
}

Arm ArmMaker::copy_arm(std::uint64_t bytes) const {
  Arm arm;
  arm.name = "copy";
  arm.detail = "cuMemcpyDtoDAsync";
  arm.result = Arm::Result::Copy;
  arm.slot_bytes = bytes;
  arm.bytes = 2 * bytes;
  const Context& context = context_;
  arm.queue = [&context, bytes](const ptxgen::Stream& stream, const ArmSite& at) {
    const Current current(context.core(), Stage::Launch);
    context.core().call(Stage::Launch, &driver::Table::memcpy_within_device_async, at.y, at.a,
                        static_cast<std::size_t>(bytes), stream.handle());
  };
  return arm;
}

std::vector<PlanVariant> plan_variants(const GemvPlan& plan, const ptx::Gpu& gpu) {
  if (plan.problem.weights != ElementType::f32 || plan.load_bytes != 16) return {};
  GemvPlan base = nvrtc_plan(plan);
  base.rows = 1;
  base.warps_out = 4;
  base.warps_k = 2;
  // 64 bytes a thread: 64 KiB for the 1024 threads of an SM, in few enough registers for them.
  base.unroll = 4;
  const auto make = [&](std::string name, auto change) {
    PlanVariant variant{std::move(name), base};
    change(variant.plan);
    const std::uint64_t units = variant.plan.units();
    variant.plan.blocks = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{gpu.sms} * variant.plan.blocks_per_sm, units));
    return variant;
  };
  const auto starved = [&](std::uint32_t load) {
    return [load](GemvPlan& p) { p.load_bytes = load, p.unroll = 1, p.blocks_per_sm = 1; };
  };
  const auto full = [&](std::uint32_t load) {
    return [load](GemvPlan& p) { p.load_bytes = load, p.unroll = 64 / load, p.blocks_per_sm = 4; };
  };
  const auto threads = [&](std::uint32_t warps) {
    return [warps](GemvPlan& p) { p.warps_k = warps / 4, p.blocks_per_sm = 32 / warps; };
  };
  return {make("starved-4", starved(4)),   make("starved-16", starved(16)),
          make("full-4", full(4)),         make("full-16", full(16)),
          make("threads-256", threads(8)), make("threads-1024", threads(32))};
}

}  // namespace ptxgen::gemv_bench
