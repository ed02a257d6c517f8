import { expect, it } from '@jest/globals';
import { stdoutFlushed } from '../../src/cli/output.ts';

it('leaves no listener behind, since a process may run many commands', async () => {
  const before = process.stdout.listenerCount('error');
  await stdoutFlushed();
  await stdoutFlushed();
  expect(process.stdout.listenerCount('error')).toBe(before);
});
