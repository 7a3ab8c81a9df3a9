// ptxgen/ptx.hpp - PTX: types, op table, IR, printer, parser, verifier, targets
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/groups.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/ops.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/source_map.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/ptx/types.hpp"
#include "ptxgen/ptx/unknown.hpp"
#include "ptxgen/ptx/verifier.hpp"
