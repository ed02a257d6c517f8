import { readFileSync, writeFileSync } from 'node:fs';

/** Clock ticks in a second, as every Linux shows them to programs. */
const ticksPerSecond = 100;

/** CPU seconds, user and system, that a process and all its threads have used; null where the system does not tell. */
export function cpuSecondsOf(pid: number): number | null {
  const text = read(pid, 'stat');
  if (text === null) return null;
  // The name before may hold spaces and brackets.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Memory of a process in bytes. */
export interface ProcessMemory {
  readonly resident: number;
  /** The most that was resident since the process began, or since `resetPeakMemory`. */
  readonly peak: number;
}

/** Memory of a process; null where the system does not tell. */
export function memoryOf(pid: number): ProcessMemory | null {
  const text = read(pid, 'status');
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text ?? '')?.[1]);
  const [resident, peak] = [kibibytes('VmRSS') * 1_024, kibibytes('VmHWM') * 1_024];
  return Number.isNaN(resident) || Number.isNaN(peak) ? null : { resident, peak };
}

/** Lets the peak begin anew from what is resident now; where that is not allowed, the peak stays that of all time. */
export function resetPeakMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Not Linux, or a container that forbids it: a peak of all time is only ever too high.
  }
}

function read(pid: number, name: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return null;
  }
}
