// tests/producers/runner.hpp - judges a producer's texts, runs them, compares results
#pragma once

#include <string>

#include "program.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"

namespace ptxgen::test {

/// The module of a text, read, printed and read again without loss, and found legal. Otherwise
/// `wrong` says what is wrong.
[[nodiscard]] ptx::Module checked_module(const std::string& text, const std::string& file,
                                         std::string& wrong);

/// What the gates that run before a load find wrong with a launch's kernel, a line each.
[[nodiscard]] std::string gate_errors(const ptx::Module& module, const ProducerLaunch& launch);

/// What an assembler has against the printed module, or nothing.
[[nodiscard]] std::string assembly_error(const ptx::Module& module, const Assembler& assembler);

/// Runs all launches on the emulator and compares with what is expected; what differs or was found.
/// `passes`: the default passes change every text before.
[[nodiscard]] std::string run_errors(const ProducerFolder& producer, const ProducerProgram& program,
                                     bool passes);

}  // namespace ptxgen::test
