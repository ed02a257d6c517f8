import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { programPath } from '../setup/programs.ts';

const workflows = join(import.meta.dirname, '../../.github/workflows');

describe('the workflows of GitHub', () => {
  it('pass actionlint', async () => {
    const files = readdirSync(workflows).map((name) => join(workflows, name));
    const actionlint = await programPath('actionlint');
    // It would also use a shellcheck and a pyflakes of the machine.
    const options = ['-shellcheck=', '-pyflakes=', '-no-color'];
    expect(files).not.toEqual([]);
    expect(execFileSync(actionlint, [...options, ...files], { encoding: 'utf8' })).toBe('');
  });
});
