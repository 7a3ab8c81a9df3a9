// ptxgen/analysis.hpp - facts about PTX: control flow, dominators, loops, registers, uniformity
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/analysis/affine.hpp"
#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/analysis/diff.hpp"
#include "ptxgen/analysis/graph.hpp"
#include "ptxgen/analysis/induction.hpp"
#include "ptxgen/analysis/lane_stride.hpp"
#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/analysis/loads_in_flight.hpp"
#include "ptxgen/analysis/memory_order.hpp"
#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/analysis/overlap.hpp"
#include "ptxgen/analysis/registers.hpp"
#include "ptxgen/analysis/uniformity.hpp"
#include "ptxgen/analysis/versions.hpp"
