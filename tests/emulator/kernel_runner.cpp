// tests/emulator/kernel_runner.cpp - runs random kernels, all that a run leaves behind
#include "kernel_runner.hpp"

#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "emulator/memory/steps.hpp"
#include "emulator/state/code.hpp"
#include "emulator/vector/isa.hpp"
#include "emulator/vector/lane_steps.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/emulator/report/profile.hpp"

namespace ptxgen::test {
namespace {

using emulator::Handler;
using emulator::Isa;

Isa isa_of(Handlers handlers) {
  if (handlers == Handlers::Avx512) return Isa::Avx512;
  return handlers == Handlers::Avx2 ? Isa::Avx2 : Isa::Baseline;
}

std::vector<emulator::HotAccess> hot_accesses() {
  std::vector<emulator::HotAccess> all;
  for (unsigned bits = 0; bits < 32; ++bits) {
    for (const std::uint8_t bytes :
         {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{4}, std::uint8_t{8}, std::uint8_t{16}}) {
      for (const std::uint8_t elements :
           {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{4}, std::uint8_t{8}}) {
        emulator::HotAccess access;
        access.store = (bits & 1u) != 0;
        access.shared = (bits & 2u) != 0;
        access.lane_bytes = (bits & 4u) != 0 ? 8 : 4;
        access.is_signed = (bits & 8u) != 0;
        access.base_is_64bit = (bits & 16u) != 0;
        access.element_bytes = bytes;
        access.elements = elements;
        all.push_back(access);
      }
    }
  }
  return all;
}

/// For each whole-warp handler that decoding may have chosen, the one to take instead.
std::map<Handler, Handler> replacements(Handlers wanted) {
  std::map<Handler, Handler> found;
  const auto add = [&](Handler from, Handler to) {
    if (from != nullptr && to != nullptr) found.emplace(from, to);
  };
  const bool slow = wanted == Handlers::LaneByLane;
  const emulator::IsaHandlers& from = emulator::handlers(emulator::best_isa());
  const emulator::IsaHandlers& to = emulator::handlers(isa_of(wanted));
  for (const emulator::HotAccess& access : hot_accesses()) {
    add(from.memory(access),
        slow ? (access.store ? &emulator::run_store : &emulator::run_load) : to.memory(access));
  }
  if (slow) return found;  // other rows were decoded so
  for (unsigned i = 0; i < static_cast<unsigned>(emulator::Alu::None); ++i) {
    const auto id = static_cast<emulator::Alu>(i);
    add(from.alu(id), to.alu(id));
  }
  for (unsigned c = 0; c <= static_cast<unsigned>(emulator::Compare::GeU); ++c) {
    for (unsigned t = 0; t <= static_cast<unsigned>(emulator::CompareType::F32); ++t) {
      const auto comparison = static_cast<emulator::Compare>(c);
      const auto type = static_cast<emulator::CompareType>(t);
      add(from.compare(comparison, type), to.compare(comparison, type));
    }
  }
  for (const unsigned bytes : {4u, 8u}) add(from.select(bytes), to.select(bytes));
  return found;
}

}  // namespace

bool offers(Handlers handlers) {
  switch (handlers) {
    case Handlers::Avx2:
    case Handlers::Avx512:
      return emulator::offers(isa_of(handlers));
    default:
      return true;
  }
}

const char* name(Handlers handlers) {
  constexpr const char* kNames[] = {"chosen", "lane by lane", "baseline", "avx2", "avx512"};
  return kNames[static_cast<unsigned>(handlers)];
}

KernelRunner::KernelRunner(const RandomKernel& kernel, Handlers handlers)
    : kernel_(kernel), device_(emulator::gpu_named("sm_80")), program_(load(handlers)) {
  if (handlers != Handlers::Chosen) use(handlers);
}

emulator::Program KernelRunner::load(Handlers handlers) {
  std::optional<emulator::LaneByLane> slow;
  if (handlers == Handlers::LaneByLane) slow.emplace();
  emulator::Program program = emulator::Program::load(device_, kernel_.ptx, "random.ptx");
  if (slow) replaced_ += slow->rows;
  return program;
}

void KernelRunner::use(Handlers handlers) {
  const std::map<Handler, Handler> other = replacements(handlers);
  for (const auto& code : program_.image().codes) {
    for (emulator::Step& step : code->steps) {
      const auto found = other.find(step.run);
      if (found == other.end()) continue;
      step.run = found->second;
      ++replaced_;
    }
  }
}

KernelOutcome KernelRunner::run(const emulator::Options& options) {
  const std::uint64_t threads = kernel_.grid.count() * kernel_.block.count();
  Dice dice(7);
  std::vector<std::uint32_t> input(kInputWords);
  for (std::uint32_t& word : input) word = static_cast<std::uint32_t>(dice.bits());
  const std::uint64_t in = device_.allocate(kInputWords * 4, "in");
  device_.write(in, std::as_bytes(std::span(input)));
  device_.protect(in);
  KernelOutcome built;
  built.out.resize(static_cast<std::size_t>(threads * kOutputWords * 4));
  built.sum.resize(kSumWords * 4);
  const std::uint64_t out = device_.allocate(built.out.size(), "out");
  const std::uint64_t sum = device_.allocate(built.sum.size(), "sum");
  device_.fill(out, std::byte{0}, built.out.size());
  device_.fill(sum, std::byte{0}, built.sum.size());
  const std::uint64_t parameters[] = {in, out, sum};
  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid = kernel_.grid;
  launch.block = kernel_.block;
  launch.parameters = std::as_bytes(std::span(parameters));
  const emulator::Result result = emulator::run(program_, launch, options);
  built.status = result.status;
  for (const emulator::RunFinding& finding : result.findings) {
    built.findings += emulator::to_text(finding) + "\n";
  }
  built.counters =
      emulator::to_text(result.counters) + emulator::annotate(kernel_.ptx, result.counters);
  built.printed = result.printed;
  device_.read(out, built.out);
  device_.read(sum, built.sum);
  for (const std::uint64_t address : parameters) device_.free(address);
  return built;
}

}  // namespace ptxgen::test
