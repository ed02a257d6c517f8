import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { usageOfTree } from '../../src/bench/process_usage.ts';

describe('the resources of a process tree', () => {
  it('include descendants, also those that have exited', async () => {
    const parent = spawn(
      'sh',
      [
        '-c',
        `${process.execPath} -e 0; ${process.execPath} -e 'console.log("up"); process.stdin.resume()'; true`,
      ],
      { stdio: ['pipe', 'pipe', 'ignore'] },
    );
    await once(parent.stdout, 'data');
    const shell = usageOfTree(parent.pid ?? 0);
    parent.stdin.end();
    await once(parent, 'exit');
    // Two starts of Node, and the memory of the one that is running.
    expect(shell?.cpu_seconds).toBeGreaterThan(0.02);
    expect(shell?.memory_bytes).toBeGreaterThan(10_000_000);
    expect(usageOfTree(parent.pid ?? 0)).toBeNull();
  });
});
