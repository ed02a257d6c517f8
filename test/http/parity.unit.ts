import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { createProgram } from '../../src/cli/run_command_line.ts';
import { describeApi } from './describe_api.ts';
import { capabilities } from './parity.ts';

describe('what users can do', () => {
  it('is in the API, and every operation of it in the table', async () => {
    const { paths } = (await describeApi()) as {
      paths: Readonly<Record<string, Readonly<Record<string, { operationId: string }>>>>;
    };
    const operations = Object.values(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    const named = new Set(capabilities.flatMap(({ api }) => api));
    // Both roots of paths have the same operations, by names that end differently.
    const missing = operations.filter((id) => !named.has(id) && !named.has(id.replace(/InEnvironment$/, '')));
    expect(missing).toEqual([]);
    expect([...named].filter((id) => !operations.includes(id))).toEqual([]);
  });

  it('is a command', () => {
    const program = createProgram();
    const commandOf = (names: readonly string[]) =>
      names.reduce<{ readonly commands: readonly ReturnType<typeof createProgram>[] } | undefined>(
        (parent, name) => parent?.commands.find((one) => one.name() === name),
        program,
      );
    const missing = capabilities.flatMap(({ cli }) => cli).filter((name) => !commandOf(name.split(' ')));
    expect(missing).toEqual([]);
  });

  it('is in the console', () => {
    const root = join(import.meta.dirname, '../../src/console');
    const missing = capabilities.filter(
      ({ console: page }) =>
        page !== null && !readFileSync(join(root, page.file), 'utf8').includes(page.uses),
    );
    expect(missing).toEqual([]);
  });

  it('has a reason where a column is empty', () => {
    const incomplete = capabilities.filter(
      ({ api, cli, console: page, without }) =>
        (api.length === 0 || cli.length === 0 || page === null) && without === undefined,
    );
    expect(incomplete).toEqual([]);
  });
});
