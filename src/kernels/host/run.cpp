// src/kernels/host/run.cpp - described kernels on the host
#include "ptxgen/kernels/host.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"

namespace ptxgen::inline v0 {

namespace {

// A thread is started in about the time in which this much memory is read.
constexpr std::uint64_t kBytesOfThread = std::uint64_t{1} << 19;

double number_of(ptx::Type type, std::uint64_t bits) {
  const auto word = static_cast<std::uint32_t>(bits);
  if (type == ptx::Type::f32) return double{std::bit_cast<float>(word)};
  if (type == ptx::Type::s32) return static_cast<std::int32_t>(word);
  if (type == ptx::Type::u32) return word;
  return static_cast<double>(bits);
}

std::span<std::byte> elements_of(const OperandUse& use, const HostRun& run) {
  return {run.at<std::byte>(use.memory), static_cast<std::size_t>(use.needs())};
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Writes the values as elements. Blocks or elements whose values are those of `before`, if there
// are any, keep their bits.
void write(ElementType type, std::span<const double> values, std::span<const double> before,
           std::span<std::byte> to) {
  std::vector<std::byte> elements = to_elements(type, values);
  const std::size_t together = info(type).block_values;
  for (std::size_t first = 0; first < before.size(); first += together) {
    const auto old = before.subspan(first, together);
    if (!std::equal(old.begin(), old.end(), values.begin() + static_cast<std::ptrdiff_t>(first),
                    same)) {
      continue;
    }
    const std::size_t at = first / together * bytes(type);
    std::memcpy(elements.data() + at, to.data() + at, bytes(type));
  }
  std::memcpy(to.data(), elements.data(), std::min(elements.size(), to.size()));
}

void run_reference(const KernelDescription& kernel, const void* spec, const void* operands,
                   const HostRun& run) {
  HostOperands host;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const ArgumentInfo& info = kernel.arguments[i];
    if (!kernel.is_present_of(spec, i)) continue;
    if (is_memory(info.role)) {
      const OperandUse use = kernel.use_of(spec, operands, i);
      const RepackedRows rows = kernel.repacked_of(spec, i);
      std::vector<double> values =
          rows.columns == 0
              ? to_values(use.type, elements_of(use, run))
              : to_values(rows.type, unpack_rows(rows.type, rows.columns, elements_of(use, run)));
      if (!kernel.is_read_of(spec, i)) std::fill(values.begin(), values.end(), 0.0);
      host.all.push_back({info.name, std::move(values), {}});
    } else if (info.role == ArgumentRole::Scalar) {
      const double number = number_of(info.scalar, kernel.bits_of(spec, operands, i));
      host.all.push_back({info.name, {number}, {}});
    }
  }
  std::vector<std::vector<double>> before(kernel.arguments.size());
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const ArgumentInfo& info = kernel.arguments[i];
    if (!is_written(info.role) || !kernel.is_present_of(spec, i)) continue;
    if (kernel.is_read_of(spec, i)) before[i] = host[info.name].values;
  }
  kernel.reference_of(spec, host);
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    const ArgumentInfo& info = kernel.arguments[i];
    if (!is_written(info.role) || !kernel.is_present_of(spec, i)) continue;
    const OperandUse use = kernel.use_of(spec, operands, i);
    write(use.type, host[info.name].values, before[i], elements_of(use, run));
  }
}

}  // namespace

HostRun::HostRun(std::uint64_t shift, const HostVectors* vectors, unsigned threads) noexcept
    : shift_(shift),
      vectors_(vectors),
      threads_(threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency())) {}

void HostRun::run_parts(std::uint64_t items, std::uint64_t bytes, std::uint64_t step,
                        const void* work, Part call) const {
  const std::uint64_t steps = (items + step - 1) / step;
  const std::uint64_t pays = items * bytes / kBytesOfThread;
  const std::uint64_t parts =
      std::max<std::uint64_t>(1, std::min({std::uint64_t{threads_}, steps, pays}));
  if (parts == 1) {
    if (items != 0) call(work, 0, items);
    return;
  }
  const auto begin_of = [&](std::uint64_t part) {
    return std::min(items, steps * part / parts * step);
  };
  std::vector<std::exception_ptr> failures(parts);
  const auto run_part = [&](std::uint64_t part) noexcept {
    try {
      call(work, begin_of(part), begin_of(part + 1));
    } catch (...) {
      failures[part] = std::current_exception();
    }
  };
  std::vector<std::thread> crew;
  std::uint64_t started = 1;
  try {
    for (; started < parts; ++started) crew.emplace_back(run_part, started);
  } catch (const std::exception&) {
    // No more threads: this one does the rest.
  }
  run_part(0);
  for (std::uint64_t part = started; part < parts; ++part) run_part(part);
  for (std::thread& thread : crew) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
}

void run_on_host(const KernelDescription& kernel, const void* spec, const void* operands,
                 const HostRun& run) {
  if (kernel.host_of != nullptr && run.vectors() != nullptr) {
    return kernel.host_of(spec, operands, run);
  }
  run_reference(kernel, spec, operands, run);
}

}  // namespace ptxgen::inline v0
