import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { acquireLock, identify, LockHeld } from '../../src/local_stack/lock.ts';
import { temporaryFolder } from './data_folder.ts';

describe('the lock of a data folder', () => {
  const folder = temporaryFolder();

  it('is held by one process until it is released', () => {
    const file = folder.inside('held');
    const release = acquireLock(file);
    expect(() => acquireLock(file)).toThrow(LockHeld);
    release();
    expect(existsSync(file)).toBe(false);
    expect(() => acquireLock(file)).not.toThrow();
  });

  it('is free when its holder was killed', () => {
    const file = folder.inside('killed');
    const { pid } = spawnSync('true');
    writeFileSync(file, JSON.stringify({ pid, started: 'once' }));
    expect(() => acquireLock(file)).not.toThrow();
  });

  it('is free when a later process has the id of its holder', () => {
    const file = folder.inside('reused');
    writeFileSync(file, JSON.stringify({ ...identify(process.pid), started: 'at another time' }));
    expect(() => acquireLock(file)).not.toThrow();
  });

  it('is free when its file is incomplete', () => {
    const file = folder.inside('incomplete');
    writeFileSync(file, '{"pid": 1');
    expect(() => acquireLock(file)).not.toThrow();
  });
});
