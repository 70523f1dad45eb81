/* The whole ABI. A strategy in C++ includes piper/strategy.hpp instead. */
#ifndef PIPER_PIPER_H
#define PIPER_PIPER_H

#include <piper/base.h>
#include <piper/directive.h>
#include <piper/filter.h>
#include <piper/graph.h>
#include <piper/options.h>
#include <piper/order.h>
#include <piper/plugin.h>
#include <piper/ranks.h>
#include <piper/version.h>

#endif
