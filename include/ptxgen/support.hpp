// ptxgen/support.hpp - errors, call sites, text buffers, log and trace
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/support/error.hpp"
#include "ptxgen/support/log.hpp"
#include "ptxgen/support/observe.hpp"
#include "ptxgen/support/settings.hpp"
#include "ptxgen/support/source_location.hpp"
#include "ptxgen/support/text_buffer.hpp"
#include "ptxgen/support/trace.hpp"
