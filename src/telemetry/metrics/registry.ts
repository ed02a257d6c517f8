import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { version } from '../version.ts';

/** Gauges of prom-client with the suffix of a counter. `nodejs_active_handles` and its like carry the same numbers. */
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** Creates the metrics of a process, with those of Node.js: CPU time, memory, event loop lag, garbage collection. */
export function createMetrics(part: 'server' | 'worker'): Registry {
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  for (const name of misnamed) metrics.removeSingleMetric(name);
  new Gauge({
    name: 'exportd_build_info',
    help: 'Version of this process; always 1.',
    labelNames: ['part', 'version'],
    registers: [metrics],
  }).set({ part, version }, 1);
  return metrics;
}
