// src/qa/edits.hpp - edits of a module that lines must notice
#pragma once

#include <cstdint>
#include <string_view>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::qa {

// All edit the first function of the module, and leave it alone if it has no such statement.

/// Removes the barrier of that number, 0 the first.
void remove_barrier(ptx::Module& module, std::size_t number);
/// Removes the statement of that number among those of an opcode.
void remove_statement(ptx::Module& module, ptx::Op op, std::size_t number);
/// Replaces operand `i` of that statement.
void set_operand(ptx::Module& module, ptx::Op op, std::size_t number, std::size_t i,
                 const ptx::Operand& value);
/// Sets a modifier of every statement of that opcode.
void set_modifier(ptx::Module& module, ptx::Op op, ptx::Field field, ptx::Modifier modifier);
/// Removes the guard of the statement of that number among the branches with a guard; an
/// unguarded forward branch is removed as a whole. The code after it then runs in all threads.
void remove_branch(ptx::Module& module, std::size_t number);
/// Inserts statements in PTX before the statement of that index.
void insert_before(ptx::Module& module, std::size_t index, std::string_view statements);
/// The index of the statement of that number among those of an opcode; the end of the body if there
/// are fewer.
[[nodiscard]] std::size_t find_statement(const ptx::Function& function, ptx::Op op,
                                         std::size_t number);
/// How many statements have the opcode.
[[nodiscard]] std::size_t count_statements(const ptx::Function& function, ptx::Op op);
/// The i-th operand of the statement of that number, for further edits; null if there is none.
[[nodiscard]] ptx::Operand* operand_at(ptx::Module& module, ptx::Op op, std::size_t number,
                                       std::size_t i);

/// The kernel adds its results to what its output was: to the target of its last store.
void accumulate_into_output(ptx::Module& module);
/// gemv_coalesced reads A[column * k + row] instead of A[row * n + column].
void swap_indices_of_matrix(ptx::Module& module);

}  // namespace ptxgen::qa
