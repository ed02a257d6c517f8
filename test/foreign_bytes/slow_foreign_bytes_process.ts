/** A program that starts for longer than a second, as on a loaded machine. */
import { performance } from 'node:perf_hooks';

while (performance.now() < 1_300);
await import('./fault_foreign_bytes_process.ts');
