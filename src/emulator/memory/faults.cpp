// src/emulator/memory/faults.cpp - findings about accesses to memory
#include "emulator/memory/faults.hpp"

#include "emulator/report/report.hpp"
#include "emulator/state/address_space.hpp"
#include "emulator/state/windows.hpp"
#include "emulator/state/written_bits.hpp"
#include "ptx/occupancy.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// An access closer than this to an allocation is reported as an access past its bounds.
constexpr std::uint64_t kNear = std::uint64_t{1} << 20;
/// Addresses below this are reported as a null pointer with an offset.
constexpr std::uint64_t kNullPage = 1u << 16;

std::string bytes_text(std::uint64_t count) { return count_text(count, "byte"); }

std::string_view space_text(ptx::Space space) {
  switch (space) {
    case ptx::Space::Shared:
      return "shared memory";
    case ptx::Space::Local:
      return "the thread's local memory";
    case ptx::Space::Param:
      return "the kernel's parameters";
    case ptx::Space::Const:
      return "constant memory";
    default:
      return "global memory";
  }
}

std::string named(const Cta& owner) {
  return format_text("block {}, rank {} of the cluster", to_text(owner.id), owner.rank);
}

/// " of block (1,0,0), rank 1 of the cluster" for another block's shared memory, else empty.
std::string owner_text(const Fault& fault) {
  return fault.owner == nullptr ? std::string() : " of " + named(*fault.owner);
}

/// "thread reads 4 bytes at 0x...", "thread writes 8 bytes at offset 0x40 of shared memory".
std::string access_text(const Fault& fault) {
  const char* const verb =
      fault.request.writes ? (fault.request.reads ? "updates" : "writes") : "reads";
  const std::string bytes = bytes_text(fault.request.bytes);
  if (window_start(fault.space) == 0) {
    return format_text("thread {} {} at {}", verb, bytes, hex(fault.address));
  }
  return format_text("thread {} {} at offset {} of {}{}", verb, bytes, hex(fault.address),
                     space_text(fault.space), owner_text(fault));
}

std::string named(const Allocation& allocation) {
  const std::string name =
      allocation.name.empty() ? "the allocation at " + hex(allocation.start) : allocation.name;
  return format_text("{} ({})", name, bytes_text(allocation.bytes));
}

void add_symbol(const Fault& fault, FindingText& text) {
  if (!fault.detail.symbol.empty()) {
    text.details.push_back("the address operand names " + fault.detail.symbol);
  }
}

constexpr std::string_view kConvertAddress =
    "convert the generic address with cvta.to, or use an access without a state space";

/// An address far from every allocation.
FindingText invalid_text(const Fault& fault) {
  FindingText text;
  const std::string access = access_text(fault);
  const ptx::Space window = window_of(fault.address);
  if (fault.address == 0) {
    text.message = format_text("{}, a null pointer", access);
  } else if (fault.address < kNullPage) {
    text.message =
        format_text("{}, a null pointer with an offset of {}", access, bytes_text(fault.address));
  } else if (window != ptx::Space::Global) {
    text.message = format_text("{}, which is in the window of {}, not in {}", access,
                               space_text(window), space_text(fault.space));
    text.details.emplace_back(kConvertAddress);
  } else {
    text.message = format_text("{}, where there is no allocation", access);
    text.details.emplace_back(
        "check how the address is computed, and that the argument is an address");
  }
  if (fault.address < kNullPage) {
    text.details.emplace_back(
        "pass the address of an allocation to the kernel, or test the pointer before the access");
  }
  add_symbol(fault, text);
  return text;
}

/// An address in a freed allocation, or close to one.
FindingText near_text(const Fault& fault, const Allocation& near) {
  FindingText text;
  const std::string access = access_text(fault);
  const std::uint64_t end = near.start + near.bytes;
  const std::uint64_t address = fault.address;
  if (near.freed && near.holds(address)) {
    text.message = format_text("{}, inside {}, {}", access, named(near), near.state);
    text.details.emplace_back(near.remedy);
    add_symbol(fault, text);
    return text;
  }
  const std::string allocation =
      near.freed ? format_text("{}, {}", named(near), near.state) : named(near);
  if (near.holds(address)) {
    text.message = format_text("{}, the last {} of them past the end of {}", access,
                               bytes_text(address + fault.request.bytes - end), allocation);
  } else if (address == end) {
    text.message = format_text("{}, right at the end of {}", access, allocation);
  } else if (address > end) {
    text.message =
        format_text("{}, {} past the end of {}", access, bytes_text(address - end), allocation);
  } else {
    text.message = format_text("{}, {} before the start of {}", access,
                               bytes_text(near.start - address), allocation);
  }
  text.details.emplace_back(
      "compare the index with the size before the access, or make the allocation larger");
  add_symbol(fault, text);
  return text;
}

/// An offset past the end of a space of `size` bytes, or close to it.
FindingText near_offset_text(const Fault& fault, std::uint64_t size) {
  FindingText text;
  const std::string access = access_text(fault);
  const std::uint64_t offset = fault.address;
  if (size == 0) {
    text.message = format_text("{}, which is empty", access);
  } else if (offset < size) {
    text.message = format_text("{}, the last {} of them past its end ({})", access,
                               bytes_text(offset + fault.request.bytes - size), bytes_text(size));
  } else if (offset == size) {
    text.message = format_text("{}, right at its end ({})", access, bytes_text(size));
  } else {
    text.message = format_text("{}, {} past its end ({})", access, bytes_text(offset - size),
                               bytes_text(size));
  }
  if (fault.space == ptx::Space::Shared) {
    const auto& variables = fault.context.grid->kernel_image->shared_variables;
    if (!variables.empty() && offset >= variables.back().offset) {
      const auto& last = variables.back();
      text.details.push_back(format_text("the last variable there is '{}' ({} at offset {})",
                                         last.name, bytes_text(last.bytes), hex(last.offset)));
    }
    text.details.emplace_back(
        "check the index, declare a larger variable, or launch with more dynamic shared memory");
  }
  add_symbol(fault, text);
  return text;
}

/// Bytes of a space of offsets, for this thread.
std::uint64_t size_of(const Fault& fault) {
  switch (fault.space) {
    case ptx::Space::Shared:
      return fault.context.cta->shared_bytes;
    case ptx::Space::Local:
      return local_end(fault.context);
    default:
      return fault.context.grid->parameters.size();
  }
}

/// The memory closest to the access, without addresses and sizes: the subject of the finding.
std::string subject_of(const Fault& fault) {
  if (fault.space == ptx::Space::Shared) {
    if (const auto* const variable = shared_variable(*fault.context.grid, fault.address)) {
      return format_text("shared variable '{}'", variable->name);
    }
  }
  if (window_start(fault.space) != 0) return std::string(space_text(fault.space));
  const Allocation* const near = fault.context.grid->space->nearest(fault.address, kNear);
  if (near == nullptr) return std::string(space_text(fault.space));
  return near->name.empty() ? "the allocation at " + hex(near->start) : near->name;
}

template <class Text>
void report(const Fault& fault, Rule rule, Text&& text, bool mapped = false) {
  fault.context.grid->reporter->report_access(fault.context, fault.step.statement, rule, fault.lane,
                                              mapped, [&] {
                                                FindingText filled = text();
                                                filled.subject = subject_of(fault);
                                                return filled;
                                              });
}

/// Bytes of a block's shared memory, rounded up to the allocation unit of the GPU.
std::uint64_t shared_with_slack(const Fault& fault) {
  const std::uint64_t unit = ptx::shared_unit(fault.context.grid->space->gpu());
  return (size_of(fault) + unit - 1) / unit * unit;
}

/// Outside of the memory that a kernel may access, but mapped on a GPU.
bool is_mapped(const Fault& fault) {
  const std::uint64_t bytes = fault.request.bytes;
  if (fault.space == ptx::Space::Shared) {
    const std::uint64_t end = shared_with_slack(fault);
    return fault.address < end && bytes <= end - fault.address;
  }
  if (window_start(fault.space) != 0) return false;
  return fault.context.grid->space->mapped(fault.address, bytes, fault.request.writes);
}

/// "byte 16 of argument 2 'y' (4096 bytes)" and the like, or empty.
std::string place_text(const Fault& fault) {
  if (fault.space == ptx::Space::Shared) {
    const SharedVariable* const variable = shared_variable(*fault.context.grid, fault.address);
    if (variable == nullptr) return {};
    return format_text("byte {} of shared variable '{}' ({})", fault.address - variable->offset,
                       variable->name, bytes_text(variable->bytes));
  }
  if (window_start(fault.space) != 0) return {};
  const Allocation* const found = fault.context.grid->space->find(fault.address);
  if (found == nullptr) return {};
  return format_text("byte {} of {}", fault.address - found->start, named(*found));
}

/// Appends ", byte 16 of ..." where the bytes have a name.
void add_place(const Fault& fault, FindingText& text) {
  if (const std::string place = place_text(fault); !place.empty()) text.message += ", " + place;
}

}  // namespace

bool report_bounds(const Fault& fault) {
  const bool mapped = is_mapped(fault);
  if (window_start(fault.space) != 0) {
    const std::uint64_t size = size_of(fault);
    if (fault.address < size || fault.address - size < kNear) {
      report(
          fault, Rule::OutOfBounds, [&] { return near_offset_text(fault, size); }, mapped);
      return mapped;
    }
    report(fault, Rule::InvalidAddress, [&] {
      FindingText text;
      text.message = format_text("{}, which has {}", access_text(fault), bytes_text(size));
      if (fault.address >= kGlobalBase) {
        text.message +=
            format_text(": this is a generic address of {}", space_text(window_of(fault.address)));
        text.details.emplace_back(kConvertAddress);
      }
      add_symbol(fault, text);
      return text;
    });
    return mapped;
  }
  const Allocation* const near = fault.context.grid->space->nearest(fault.address, kNear);
  if (near == nullptr) {
    report(
        fault, Rule::InvalidAddress, [&] { return invalid_text(fault); }, mapped);
  } else {
    report(
        fault, Rule::OutOfBounds, [&] { return near_text(fault, *near); }, mapped);
  }
  return mapped;
}

void report_misaligned(const Fault& fault) {
  report(fault, Rule::Misaligned, [&] {
    FindingText text;
    text.message = format_text("{}, which is not a multiple of {}", access_text(fault),
                               fault.request.alignment);
    if (const std::string place = place_text(fault); !place.empty()) {
      text.message += "; it is " + place;
    }
    text.details.emplace_back(
        "align the address to the access size, which for a vector is that of all its elements");
    add_symbol(fault, text);
    return text;
  });
}

void report_readonly(const Fault& fault) {
  report(fault, Rule::WriteToReadonly, [&] {
    FindingText text;
    text.message = access_text(fault);
    add_place(fault, text);
    text.message += fault.space == ptx::Space::Param ? ", which a kernel may only read"
                                                     : ", which is read-only";
    add_symbol(fault, text);
    return text;
  });
}

void report_unwritten(const Fault& fault) {
  report(fault, Rule::UninitializedRead, [&] {
    FindingText text;
    text.message = access_text(fault);
    add_place(fault, text);
    text.message += ", which was never written";
    text.details.emplace_back(
        "write it first; if another thread writes it, put a barrier between the write and the "
        "read");
    add_symbol(fault, text);
    return text;
  });
}

void report_exited(const Fault& fault) {
  report(fault, Rule::ExitedBlock, [&] {
    FindingText text;
    text.message = access_text(fault) + ", which has exited";
    text.details.emplace_back(kSyncBeforeExit);
    add_symbol(fault, text);
    return text;
  });
}

void report_not_own(const Fault& fault) {
  report(fault, Rule::InvalidAddress, [&] {
    FindingText text;
    text.message =
        access_text(fault) + "; the instruction accesses only the block's own shared memory";
    text.details.emplace_back("use .shared::cluster, or a generic address without a space");
    add_symbol(fault, text);
    return text;
  });
}

void report_no_object(const Fault& fault) {
  report(fault, Rule::UninitializedRead, [&] {
    FindingText text;
    text.message = format_text("thread uses an mbarrier at offset {} of shared memory{}",
                               hex(fault.address), owner_text(fault));
    add_place(fault, text);
    text.message += ", which was not initialised";
    text.details.emplace_back(
        "run mbarrier.init in one thread, then a barrier before the first use");
    add_symbol(fault, text);
    return text;
  });
}

}  // namespace ptxgen::inline v0::emulator
