/** A program that starts for longer than a second, as on a loaded machine. */
import { setTimeout as delay } from 'node:timers/promises';

await delay(1_300);
await import('./fault_foreign_bytes_process.ts');
