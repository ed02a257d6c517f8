import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { treeUseOf } from '../../src/bench/process_figures.ts';

describe('what a tree of processes uses', () => {
  it('has what its descendants use, those that have ended included', async () => {
    const parent = spawn(
      'sh',
      [
        '-c',
        `${process.execPath} -e 0; ${process.execPath} -e 'console.log("up"); process.stdin.resume()'; true`,
      ],
      { stdio: ['pipe', 'pipe', 'ignore'] },
    );
    await once(parent.stdout, 'data');
    const shell = treeUseOf(parent.pid ?? 0);
    parent.stdin.end();
    await once(parent, 'exit');
    // Two starts of Node, and the memory of the one that still runs.
    expect(shell?.cpu_seconds).toBeGreaterThan(0.02);
    expect(shell?.memory_bytes).toBeGreaterThan(10_000_000);
    expect(treeUseOf(parent.pid ?? 0)).toBeNull();
  });
});
