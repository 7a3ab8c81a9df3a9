// src/emulator/machine/run.cpp - runs a launch: blocks on host threads
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <thread>

#include "emulator/lane/numerics.hpp"
#include "emulator/machine/cluster.hpp"
#include "emulator/machine/launch_plan.hpp"
#include "emulator/machine/launch_progress.hpp"
#include "emulator/machine/observe.hpp"
#include "emulator/machine/warp.hpp"
#include "emulator/memory/bulk.hpp"
#include "emulator/race/race.hpp"
#include "emulator/report/counting.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/address_space.hpp"
#include "ptx/occupancy.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// Segments that a warp runs before the next warp, in the schedule of seed 0.
constexpr std::uint64_t kQuantum = 1u << 16;
/// Maximum local memory for calls; keeps sums far from overflow.
constexpr std::uint32_t kMaxStack = 1u << 24;
/// Maximum blocks of one worker that wait for other blocks of the grid.
constexpr std::size_t kMaxSuspended = 4096;
/// Scheduling rounds of a block before the next block of its cluster runs.
constexpr std::uint64_t kClusterRounds = 4;
/// Scheduling rounds between two checks for a block that only polls.
constexpr std::uint64_t kPollCheckRounds = 64;

/// SplitMix64: a well-mixed number for each counter value.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

[[noreturn]] void refuse(const Program& program, const Launch& launch, std::string code,
                         std::string message) {
  Error error(Stage::Launch, std::move(code), std::move(message));
  error.kernel = std::string(launch.kernel);
  error.file = program.module().file;
  throw error.refresh();
}

/// The cluster size: that of the launch, else that of the kernel.
Dim3 cluster_of(const Program::Kernel& kernel, const Launch& launch) {
  const bool from_kernel = launch.cluster == Dim3{1, 1, 1} && kernel.required_cluster.x != 0;
  return from_kernel ? kernel.required_cluster : launch.cluster;
}

bool has_clusters(const ptx::Gpu& gpu) {
  ptx::TargetName target;
  return ptx::parse_target_name(gpu.target, target) && target.sm >= 90;
}

/// Throws if a limit does not hold.
class LaunchLimits {
 public:
  LaunchLimits(const Program& program, const Launch& launch) : program_(program), launch_(launch) {}

  void check_grid() const {
    const Dim3& grid = launch_.grid;
    require(grid.x > 0 && grid.y > 0 && grid.z > 0,
            "a grid of {} blocks is empty; every dimension must be at least 1", to_text(grid));
    require(grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535,
            "a grid of {} blocks; the maximum is (2147483647,65535,65535)", to_text(grid));
  }
  void check_block(const Program::Kernel& kernel) const {
    const Dim3& block = launch_.block;
    require(block.x > 0 && block.y > 0 && block.z > 0,
            "a block of {} threads is empty; every dimension must be at least 1", to_text(block));
    require(block.x <= 1024 && block.y <= 1024 && block.z <= 64 && block.count() <= 1024,
            "a block of {} threads; the maximum is (1024,1024,64), and 1024 in all",
            to_text(block));
    require(block.count() <= kernel.max_threads,
            "a block of {} threads has {}, more than the {} of the kernel's .maxntid",
            to_text(block), block.count(), kernel.max_threads);
    require(kernel.required_block.x == 0 || kernel.required_block == block,
            "a block of {} threads, but the kernel's .reqntid requires {}", to_text(block),
            to_text(kernel.required_block));
  }
  void check_cluster(const Program::Kernel& kernel, const ptx::Gpu& gpu) const {
    const Dim3& grid = launch_.grid;
    const Dim3& required = kernel.required_cluster;
    require(required.x == 0 || launch_.cluster == Dim3{1, 1, 1} || launch_.cluster == required,
            "clusters of {} blocks, but the kernel's .reqnctapercluster requires {}",
            to_text(launch_.cluster), to_text(required));
    const Dim3 cluster = cluster_of(kernel, launch_);
    const std::uint32_t max_blocks = std::min(kernel.max_cluster, kMaxCluster);
    require(cluster.count() > 0 && cluster.count() <= max_blocks,
            "clusters of {} blocks; 1 to {} are allowed{}", to_text(cluster), max_blocks,
            max_blocks < kMaxCluster ? " by the kernel's .maxclusterrank" : "");
    require(cluster.count() == 1 || has_clusters(gpu),
            "clusters of {} blocks; '{}' has no clusters, which need sm_90", to_text(cluster),
            gpu.name);
    require(grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0,
            "a grid of {} blocks cannot be divided into clusters of {}", to_text(grid),
            to_text(cluster));
  }
  void check_shared(std::uint32_t static_bytes, const ptx::Gpu& gpu) const {
    const std::uint64_t bytes = std::uint64_t{static_bytes} + launch_.dynamic_shared_bytes;
    require(bytes <= gpu.shared_per_block,
            "{} of shared memory ({} of them dynamic); a block of '{}' can have {}",
            count_text(bytes, "byte"), launch_.dynamic_shared_bytes, gpu.name,
            gpu.shared_per_block);
  }

 private:
  template <class... Values>
  void require(bool holds, fmt::format_string<Values...> message, Values&&... values) const {
    if (holds) return;
    refuse(program_, launch_, "launch-limits",
           format_text(message, std::forward<Values>(values)...));
  }

  const Program& program_;
  const Launch& launch_;
};

void check(const Program& program, const Launch& launch, const ptx::Gpu& gpu) {
  const Program::Kernel* kernel = program.find_kernel(launch.kernel);
  if (kernel == nullptr) {
    std::vector<std::string_view> names;
    for (const Program::Kernel& each : program.kernels()) names.push_back(each.name);
    refuse(program, launch, "not-found",
           format_text("there is no kernel '{}'; the module has {}", launch.kernel,
                       names.empty() ? "none" : join_text(names)));
  }
  const LaunchLimits limits(program, launch);
  limits.check_grid();
  limits.check_block(*kernel);
  limits.check_cluster(*kernel, gpu);
  const auto index = static_cast<std::size_t>(kernel - program.kernels().data());
  limits.check_shared(program.image().kernel_images[index].static_shared_bytes, gpu);
  if (launch.parameters.size() != kernel->parameter_bytes) {
    refuse(program, launch, "parameters",
           format_text("the parameter block has {}, the kernel's parameters take {}",
                       count_text(launch.parameters.size(), "byte"), kernel->parameter_bytes));
  }
}

/// The launch order of a seed: the block at position `order` is `at(order)`. An affine permutation,
/// which needs no memory.
class BlockOrder {
 public:
  BlockOrder(std::uint64_t count, std::uint64_t seed) : count_(count) {
    if (seed == 0 || count < 2) return;
    first_ = mixed(seed) % count;
    step_ = 1 + mixed(seed + 1) % (count - 1);
    while (std::gcd(step_, count) != 1) step_ = 1 + step_ % (count - 1);
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t order) const {
    if (step_ == 1) return (first_ + order) % count_;
    // order * step + first by doubling: the product may not fit 64 bits, count is below 2^63.
    std::uint64_t result = first_;
    std::uint64_t addend = step_;
    for (std::uint64_t bits = order; bits != 0; bits >>= 1) {
      if ((bits & 1u) != 0) result = (result + addend) % count_;
      addend = (addend + addend) % count_;
    }
    return result % count_;
  }

 private:
  std::uint64_t count_;
  std::uint64_t first_ = 0;
  std::uint64_t step_ = 1;
};

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
template <class T>
using Zeroed = std::unique_ptr<T, Free>;

/// Zeroed memory, committed when accessed.
template <class T>
Zeroed<T> zeroed(std::size_t count) {
  Zeroed<T> result(static_cast<T*>(std::calloc(std::max<std::size_t>(count, 1), sizeof(T))));
  if (result == nullptr) throw std::bad_alloc();
  return result;
}

/// Reserved shared memory of a kernel that uses it: the system reserve of sm_80 and later.
constexpr std::uint32_t kReservedShared = 1024;
/// The grid workspace: its size and the grid barrier, 32 bits each.
constexpr std::uint64_t kGridWorkspace = 8;

bool names_special(const Image& image, std::uint32_t kernel, ptx::SpecialRegister first,
                   ptx::SpecialRegister last) {
  return std::ranges::any_of(image.codes, [&](const std::unique_ptr<Code>& code) {
    return code != nullptr && code->kernel == kernel &&
           std::ranges::any_of(code->frame_values, [&](const FrameValue& value) {
             return value.kind == FrameValue::Kind::Special &&
                    value.value >= static_cast<std::uint64_t>(first) &&
                    value.value <= static_cast<std::uint64_t>(last);
           });
  });
}

/// A block and its memory; reused for one block after another.
struct Place {
  Cta cta;
  Zeroed<std::byte> shared;
  Zeroed<std::uint64_t> shared_written;
  Zeroed<std::byte> local;
  Zeroed<std::uint64_t> local_written;
};

/// The blocks of a cluster; a single block in a launch without clusters.
struct Group {
  Cluster cluster;
  std::vector<std::unique_ptr<Place>> places;  ///< by rank
};

class LaunchRun {
 public:
  /// `exact`: see plan_launch.
  LaunchRun(const Program& program, const Launch& launch, const Options& options, bool exact,
            Observation* observation = nullptr)
      : image_(program.image()), reporter_(image_, options, launch.kernel) {
    const Program::Kernel& kernel = *program.find_kernel(launch.kernel);
    const auto number = static_cast<std::size_t>(&kernel - program.kernels().data());
    grid_.image = &image_;
    grid_.kernel = &kernel;
    grid_.kernel_image = &image_.kernel_images[number];
    grid_.code = image_.codes[grid_.kernel_image->code].get();
    grid_.space = image_.space;
    grid_.reporter = &reporter_;
    grid_.options = options;
    grid_.observation = observation;
    grid_.run_steps = observation == nullptr ? &run_steps : &run_observed_steps;
    grid_.grid = launch.grid;
    grid_.block = launch.block;
    grid_.cluster = cluster_of(kernel, launch);
    grid_.explicit_cluster = launch.cluster != Dim3{1, 1, 1} || kernel.required_cluster.x != 0 ||
                             kernel.explicit_cluster;
    cluster_size_ = static_cast<std::uint32_t>(grid_.cluster.count());
    grid_.cooperative = launch.cooperative;
    grid_.dynamic_shared_bytes = launch.dynamic_shared_bytes;
    grid_.parameters.assign(launch.parameters.begin(), launch.parameters.end());
    std::uint32_t local = grid_.kernel_image->local_bytes;
    if (grid_.kernel_image->recursive) local += std::min(options.stack_bytes, kMaxStack);
    grid_.local_stride = (local + 63) / 64 * 64;
    provide_for_groups(static_cast<std::uint32_t>(number));
    total_ = launch.grid.count() / cluster_size_;
    order_ = BlockOrder(total_, options.seed);
    progress_.emplace(grid_.options, reporter_, total_ * cluster_size_, cluster_size_);
    kernel_number_ = static_cast<std::uint32_t>(number);
    plan_ = plan_launch(grid_, kernel_number_, total_, exact);
    if (plan_.races) watch_races();
  }

  LaunchRun(const LaunchRun&) = delete;
  LaunchRun& operator=(const LaunchRun&) = delete;
  ~LaunchRun() {
    if (grid_.grid_workspace != 0) grid_.space->free(grid_.grid_workspace);
  }

  /// Undoes the launch, and records why for later launches.
  void undo(const Replay& replay) {
    grid_.races->undo();
    remember(grid_, kernel_number_, replay);
  }

  /// Throws `Replay` if the launch must be undone and run again with an exact race check.
  Result run(const ptx::Gpu& gpu) {
    grid_.sms = gpu.sms;
    const Options& options = grid_.options;
    const unsigned threads = plan_.threads;
    workers_.resize(threads);
    for (unsigned i = 0; i < threads; ++i) {
      Worker& worker = workers_[i];
      worker.grid = &grid_;
      worker.index = i;
      worker.segment_executions.assign(image_.segment_count, 0);
      worker.segment_lanes.assign(image_.segment_count, 0);
      worker.branch_divergent.assign(image_.segment_count, 0);
      worker.predicated_off.assign(image_.statement_count, 0);
      worker.memory_counters.resize(image_.memory_counter_count);
    }
    const auto started = std::chrono::steady_clock::now();
    if (threads == 1) {
      work(workers_[0]);
    } else {
      std::vector<std::thread> crew;
      std::vector<std::exception_ptr> failures(threads);
      const auto work_of = [this, &failures](unsigned i) {
        try {
          work(workers_[i]);
        } catch (...) {
          failures[i] = std::current_exception();
          abandoned_.store(true, std::memory_order_relaxed);
        }
      };
      for (unsigned i = 1; i < threads; ++i) crew.emplace_back(work_of, i);
      work_of(0);
      for (std::thread& thread : crew) thread.join();
      for (const std::exception_ptr& failure : failures) {
        if (failure) std::rethrow_exception(failure);
      }
    }
    Result result;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    result.findings = reporter_.take();
    result.unchecked = RuleSet::all().remove(options.checks).remove(Rule::Nondeterminism);
    for (const Rule rule : {Rule::GlobalRace, Rule::ScopeTooNarrow}) {
      const bool gave_up = grid_.races && !grid_.races->complete();
      if (plan_.unchecked.has(rule) || gave_up) result.unchecked.add(rule);
    }
    const bool errors = std::ranges::any_of(result.findings, [](const RunFinding& finding) {
      return finding.finding.severity == Severity::Error;
    });
    result.status = reporter_.faulted() ? Status::Fault : errors ? Status::Findings : Status::Ok;
    std::ranges::sort(printed_, {}, &Printed::order);
    for (const Printed& part : printed_) {
      if (result.printed.size() + part.text.size() > options.printf_bytes) break;
      result.printed += part.text;
    }
    if (options.counters) {
      result.counters = collect(image_, kernel_number_, workers_);
      count_waves(result.counters);
    }
    return result;
  }

 private:
  enum class BlockStop : std::uint8_t {
    Done,
    Spins,    ///< all its warps poll other blocks
    Blocked,  ///< in a cluster: no warp can proceed by itself
    Yields,   ///< in a cluster: its rounds are used up
  };

  void watch_races() {
    try {
      grid_.races = Races::for_global(*grid_.space, plan_.watch);
    } catch (const Error&) {
      // No address space for the shadow: run without the check, and report that.
      plan_.races = false;
      plan_.unchecked = RuleSet().add(Rule::GlobalRace).add(Rule::ScopeTooNarrow);
    }
  }

  void count_waves(Counters& counters) const {
    const ptx::Gpu& gpu = grid_.space->gpu();
    ptx::BlockNeeds needs;
    needs.threads = static_cast<std::uint32_t>(grid_.block.count());
    needs.registers = ptx::max_registers(gpu, *grid_.code->function);
    needs.static_shared = grid_.kernel_image->static_shared_bytes;
    needs.dynamic_shared = needs.max_dynamic_shared = grid_.dynamic_shared_bytes;
    counters.blocks_per_sm = ptx::blocks_per_sm(gpu, needs);
    const double places = static_cast<double>(counters.blocks_per_sm) * gpu.sms;
    if (places != 0) counters.waves = static_cast<double>(grid_.grid.count()) / places;
  }

  /// Memory for cooperative groups. Without the workspace a grid barrier traps, as on hardware.
  void provide_for_groups(std::uint32_t kernel) {
    using ptx::SpecialRegister;
    if (grid_.cooperative &&
        names_special(image_, kernel, SpecialRegister::envreg1, SpecialRegister::envreg2)) {
      grid_.grid_workspace = grid_.space->allocate(kGridWorkspace, "the workspace of the grid");
      grid_.space->fill(grid_.grid_workspace, std::byte{0}, kGridWorkspace);
    }
    if (names_special(image_, kernel, SpecialRegister::reserved_smem_offset_begin,
                      SpecialRegister::reserved_smem_offset_1)) {
      const std::uint32_t own =
          grid_.kernel_image->static_shared_bytes + grid_.dynamic_shared_bytes;
      grid_.reserved_shared_start = (own + 127) / 128 * 128;
      grid_.reserved_shared_bytes = kReservedShared;
    }
  }

  void work(Worker& worker) {
    const numerics::HostFloatState float_state;
    std::deque<std::unique_ptr<Group>> suspended;
    std::vector<std::unique_ptr<Group>> idle;
    while (!abandoned_.load(std::memory_order_relaxed)) {
      std::unique_ptr<Group> group;
      const bool may_begin = suspended.size() < kMaxSuspended / cluster_size_;
      std::uint64_t order = may_begin ? next_.fetch_add(1) : total_;
      if (order < total_ && !reporter_.stopped(order * cluster_size_)) {
        if (idle.empty()) {
          group = make_group(worker);
        } else {
          group = std::move(idle.back());
          idle.pop_back();
        }
        begin(*group, order);
      } else if (!suspended.empty()) {
        group = std::move(suspended.front());
        suspended.pop_front();
      } else {
        return;
      }
      if (run_group(*group) == BlockStop::Spins) {
        suspended.push_back(std::move(group));
        continue;
      }
      if (grid_.observation != nullptr && grid_.observation->stopped()) abandoned_ = true;
      for (const auto& place : group->places) report_unfinished(place->cta);
      std::uint64_t instructions = 0;
      for (const auto& place : group->places) instructions += end(*place);
      progress_->ended(group->places[0]->cta.order, instructions);
      idle.push_back(std::move(group));
    }
  }

  std::unique_ptr<Group> make_group(Worker& worker) {
    auto group = std::make_unique<Group>();
    for (std::uint32_t rank = 0; rank < cluster_size_; ++rank) {
      group->places.push_back(make_place(worker));
      Cta& cta = group->places.back()->cta;
      cta.cluster = &group->cluster;
      cta.rank = rank;
      group->cluster.blocks.push_back(&cta);
    }
    group->cluster.warps.resize(group->places[0]->cta.warps.size() * cluster_size_);
    return group;
  }

  std::unique_ptr<Place> make_place(Worker& worker) {
    auto place = std::make_unique<Place>();
    Cta& cta = place->cta;
    cta.grid = &grid_;
    cta.worker = &worker;
    cta.threads = static_cast<std::uint32_t>(grid_.block.count());
    cta.shared_bytes = grid_.reserved_shared_bytes != 0
                           ? grid_.reserved_shared_start + grid_.reserved_shared_bytes
                           : grid_.kernel_image->static_shared_bytes + grid_.dynamic_shared_bytes;
    cta.local_stride = grid_.local_stride;
    // 64 bytes more for full vector reads at the end, and the memory that a GPU maps after it
    // (Options::mapped_pages).
    cta.shared_slack = static_cast<std::uint32_t>(ptx::shared_unit(grid_.space->gpu()));
    place->shared = zeroed<std::byte>(cta.shared_bytes + cta.shared_slack + 64);
    place->shared_written = zeroed<std::uint64_t>((cta.shared_bytes + cta.shared_slack) / 64 + 2);
    place->local = zeroed<std::byte>(std::size_t{cta.threads} * cta.local_stride + 64);
    place->local_written =
        zeroed<std::uint64_t>(std::size_t{cta.threads} * (cta.local_stride / 64) + 1);
    cta.shared = place->shared.get();
    cta.shared_written = place->shared_written.get();
    cta.local = place->local.get();
    cta.local_written = place->local_written.get();
    cta.warps = std::vector<Warp>((cta.threads + kLanes - 1) / kLanes);
    for (std::uint32_t i = 0; i < cta.warps.size(); ++i) {
      Warp& warp = cta.warps[i];
      warp.cta = &cta;
      warp.index = i;
      warp.first_thread = i * kLanes;
      const std::uint32_t threads = std::min(kLanes, cta.threads - warp.first_thread);
      warp.lanes = threads == kLanes ? 0xffffffffu : (1u << threads) - 1;
    }
    return place;
  }

  void begin(Group& group, std::uint64_t order) {
    const Dim3& size = grid_.cluster;
    const std::uint64_t number = order_.at(order);
    const std::uint64_t row = grid_.grid.x / size.x;
    const std::uint64_t plane = row * (grid_.grid.y / size.y);
    Cluster& cluster = group.cluster;
    cluster.id = {static_cast<std::uint32_t>(number % row),
                  static_cast<std::uint32_t>(number % plane / row),
                  static_cast<std::uint32_t>(number / plane)};
    std::ranges::fill(cluster.warps, Cluster::Arrivals{});
    cluster.phase = 0;
    for (const auto& place : group.places) {
      Cta& cta = place->cta;
      const Dim3 in = thread_position(size, cta.rank);
      cta.order = order * cluster_size_ + cta.rank;
      cta.id = {cluster.id.x * size.x + in.x, cluster.id.y * size.y + in.y,
                cluster.id.z * size.z + in.z};
      cta.linear = (std::uint64_t{cta.id.z} * grid_.grid.y + cta.id.y) * grid_.grid.x + cta.id.x;
      begin(*place);
    }
  }

  void begin(Place& place) {
    Cta& cta = place.cta;
    cta.killed = false;
    cta.printed.clear();
    cta.barriers = {};
    cta.schedule_round = 0;
    if (cta.shared_bytes != 0) {
      std::memset(cta.shared, 0, cta.shared_bytes + cta.shared_slack);
      std::memset(cta.shared_written, 0, (cta.shared_bytes / 64 + 1) * sizeof(std::uint64_t));
      if (grid_.reserved_shared_bytes != 0) {
        // The driver initialises it with zeros.
        std::memset(cta.shared_written + grid_.reserved_shared_start / 64, 0xff,
                    grid_.reserved_shared_bytes / 8);
      }
      if (grid_.options.checks.has(Rule::SharedRace) ||
          grid_.options.checks.has(Rule::RaceSameValue)) {
        if (cta.races) {
          cta.races->restart(cta);
        } else {
          cta.races = Races::for_shared(cta);
        }
      }
    }
    const std::size_t words = cta.local_stride / 64;
    const std::size_t first = std::min<std::size_t>(words, grid_.code->local_bytes / 64 + 1);
    for (std::size_t t = 0; t < cta.threads; ++t) {
      std::memset(cta.local_written + t * words, 0, first * sizeof(std::uint64_t));
    }
    if (grid_.races) grid_.races->block_begins(cta);
    for (Warp& warp : cta.warps) {
      warp.free_frames.clear();
      for (Frame& frame : warp.frames) warp.free_frames.push_back(&frame);
      start_warp(warp);
    }
  }

  /// Returns the executed warp instructions of the block.
  std::uint64_t end(Place& place) {
    if (grid_.races) grid_.races->block_ends(place.cta);
    std::uint64_t instructions = 0;
    for (const Warp& warp : place.cta.warps) instructions += warp.instructions;
    if (!place.cta.printed.empty()) {
      const std::lock_guard lock(mutex_);
      printed_.push_back({place.cta.order, std::move(place.cta.printed)});
    }
    return instructions;
  }

  BlockStop run_group(Group& group) {
    if (cluster_size_ == 1) {
      Cta& cta = group.places[0]->cta;
      if (reporter_.stopped(cta.order)) cta.killed = true;
      return run_block(cta);
    }
    return run_cluster(group.cluster);
  }

  /// Runs the blocks of a cluster alternately, until they are done or only poll other clusters.
  BlockStop run_cluster(Cluster& cluster) {
    const std::uint64_t seed = grid_.options.seed;
    const auto blocks = static_cast<std::uint32_t>(cluster.blocks.size());
    for (;;) {
      bool all_done = true;
      bool all_wait = true;
      bool all_stuck = true;
      const Cta& first = *cluster.blocks[0];
      const std::uint64_t random =
          seed == 0 ? 0 : mixed(seed ^ mixed(first.order ^ (first.schedule_round << 32)) ^ 1);
      for (std::uint32_t i = 0; i < blocks; ++i) {
        Cta& cta = *cluster.blocks[(i + random) % blocks];
        if (reporter_.stopped(cta.order)) cta.killed = true;
        const BlockStop stop = run_block(cta);
        if (cta.killed) {
          // A cluster without one of its blocks has no defined behaviour.
          for (Cta* each : cluster.blocks) each->killed = true;
          return BlockStop::Done;
        }
        all_done &= stop == BlockStop::Done;
        all_wait &= stop == BlockStop::Done || stop == BlockStop::Blocked;
        all_stuck &= stop != BlockStop::Yields;
      }
      if (all_done) return BlockStop::Done;
      if (all_wait) {
        // A later block may have released an earlier one.
        if (std::ranges::none_of(cluster.blocks, [](const Cta* cta) { return can_run(*cta); })) {
          resolve_deadlock(cluster);
        }
      } else if (only_polls(cluster)) {
        end_polling(cluster);
      } else if (all_stuck && total_ > 1) {
        return BlockStop::Spins;
      }
    }
  }

  /// Runs a block until it is done or all its warps only poll other blocks; in a cluster for at
  /// most kClusterRounds.
  BlockStop run_block(Cta& cta) {
    const std::uint64_t seed = grid_.options.seed;
    const auto warps = cta.warps.size();
    const std::uint64_t last =
        cluster_size_ == 1 ? ~std::uint64_t{0} : cta.schedule_round + kClusterRounds;
    for (;;) {
      bool ran = false;
      bool only_spins = true;
      bool all_done = true;
      const std::uint64_t round = cta.schedule_round++;
      if (round != 0) progress_->running();
      cta.killed |= abandoned_.load(std::memory_order_relaxed);
      const std::uint64_t random = seed == 0 ? 0 : mixed(seed ^ mixed(cta.order ^ (round << 32)));
      if (cta.bulk != nullptr) deliver_due(cta);
      for (std::size_t i = 0; i < warps; ++i) {
        Warp& warp = cta.warps[(i + random) % warps];
        if (cta.killed) return BlockStop::Done;
        if (warp.done()) continue;
        all_done = false;
        if (!can_run(warp)) continue;
        // Other seeds switch warps after a few segments.
        const std::uint64_t quantum = seed == 0 ? kQuantum : 1 + mixed(random + i) % 64;
        const WarpStop stop = run_warp(warp, quantum);
        if (stop == WarpStop::Blocked && !moved(warp)) continue;
        ran = true;
        only_spins &= stop == WarpStop::Spins;
      }
      if (all_done || cta.killed) {
        deliver_all(cta);
        if (cluster_size_ > 1 && !cta.killed && cta.races) cta.races->block_leaves(cta);
        return BlockStop::Done;
      }
      if (!ran || only_spins) {
        // Deliver pending copies before reporting warps that wait for them.
        if (cta.bulk != nullptr && deliver_next(cta)) continue;
        if (cluster_size_ > 1) return ran ? BlockStop::Spins : BlockStop::Blocked;
        if (!ran) {
          resolve_deadlock(*cta.cluster);
        } else if (only_polls(*cta.cluster)) {
          end_polling(*cta.cluster);
        } else if (total_ > 1) {
          return BlockStop::Spins;
        }
      } else if (cluster_size_ == 1 && round % kPollCheckRounds == 0 && only_polls(*cta.cluster)) {
        // With short quanta, all warps rarely spin in the same round.
        end_polling(*cta.cluster);
      }
      if (round >= last) return BlockStop::Yields;
    }
  }

  /// Whether a waiting warp has executed anything since the last call.
  static bool moved(Warp& warp) {
    const bool changed = warp.instructions != warp.seen_instructions;
    warp.seen_instructions = warp.instructions;
    return changed;
  }

  struct Printed {
    std::uint64_t order;
    std::string text;
  };

  const Image& image_;
  Reporter reporter_;
  Grid grid_;
  std::uint64_t total_ = 0;  ///< clusters
  std::uint32_t cluster_size_ = 1;
  std::uint32_t kernel_number_ = 0;
  BlockOrder order_{1, 0};
  std::vector<Worker> workers_;
  LaunchPlan plan_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> abandoned_{false};  ///< another worker has failed
  std::optional<LaunchProgress> progress_;
  std::mutex mutex_;
  std::vector<Printed> printed_;
};

}  // namespace

Result run(Program& program, const Launch& launch, const Options& options) {
  const ptx::Gpu& gpu = program.image().space->gpu();
  check(program, launch, gpu);
  {
    LaunchRun first(program, launch, options, false);
    try {
      return first.run(gpu);
    } catch (const Replay& replay) {
      first.undo(replay);
    }
  }
  return LaunchRun(program, launch, options, true).run(gpu);
}

Result observe(Program& program, const Launch& launch, Observer& observer, const Options& options) {
  const ptx::Gpu& gpu = program.image().space->gpu();
  check(program, launch, gpu);
  Options one_thread = options;
  one_thread.threads = 1;
  one_thread.parallel = false;
  Observation observation(program.image(), observer);
  // Exact: a replay would show the observer its instructions twice.
  return LaunchRun(program, launch, one_thread, true, &observation).run(gpu);
}

}  // namespace ptxgen::inline v0::emulator
