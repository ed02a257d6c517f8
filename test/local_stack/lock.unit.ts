import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { LockHeld, takeLock } from '../../src/local_stack/lock.ts';
import { identify } from '../../src/local_stack/process_identity.ts';
import { temporaryFolder } from './data_folder.ts';

describe('the lock of a data folder', () => {
  const folder = temporaryFolder();

  it('is held by one process until it is released', () => {
    const file = folder.inside('held');
    const release = takeLock(file);
    expect(() => takeLock(file)).toThrow(LockHeld);
    release();
    expect(existsSync(file)).toBe(false);
    expect(() => takeLock(file)).not.toThrow();
  });

  it('is free when its holder has ended without a word', () => {
    const file = folder.inside('ended');
    const { pid } = spawnSync('true');
    writeFileSync(file, JSON.stringify({ pid, started: 'once' }));
    expect(() => takeLock(file)).not.toThrow();
  });

  it('is free when the id of its holder belongs to a later process', () => {
    const file = folder.inside('reused');
    writeFileSync(file, JSON.stringify({ ...identify(process.pid), started: 'at another time' }));
    expect(() => takeLock(file)).not.toThrow();
  });

  it('is free when half of it was written', () => {
    const file = folder.inside('torn');
    writeFileSync(file, '{"pid": 1');
    expect(() => takeLock(file)).not.toThrow();
  });
});
