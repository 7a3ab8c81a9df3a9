// src/frames/frame.cpp - the frame of a moment
#include "ptxgen/frames/frame.hpp"

#include "ptxgen/ptx/printer.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::frames {

bool is_barrier(const ptx::Instruction& instruction) noexcept {
  if (instruction.kind != ptx::StatementKind::Instruction) return false;
  const std::string_view mnemonic = ptx::info(instruction.op).mnemonic;
  return (mnemonic == "bar" && instruction.op != ptx::Op::bar_warp_sync) || mnemonic == "barrier";
}

std::string finding_line(const Finding& finding) {
  return format_text("line {}, {}: {}", finding.line, finding.rule, finding.message);
}

Frame capture(const emulator::Moment& moment, const emulator::Device& device,
              std::span<const Watch> watches, std::span<const Buffer> buffers) {
  Frame frame;
  frame.number = moment.number();
  frame.kernel = std::string(moment.module().text(moment.function().name));
  frame.grid = moment.grid_size();
  frame.block_size = moment.block_size();
  frame.block = moment.block();
  frame.block_number = moment.block_number();
  frame.warp = moment.warp();
  frame.line = moment.line();
  frame.instruction = ptx::print(moment.module(), moment.function(), moment.instruction());
  frame.barrier = is_barrier(moment.instruction());
  frame.active = moment.active();
  frame.executing = moment.executing();
  frame.warps = moment.warps();
  frame.watched = read_watches(moment, device, watches, buffers);
  frame.findings = moment.finding_count();
  if (frame.findings != 0) {
    const emulator::RunFinding found = moment.last_finding();
    frame.finding = finding_line(found.finding);
  }
  return frame;
}

}  // namespace ptxgen::inline v0::frames
