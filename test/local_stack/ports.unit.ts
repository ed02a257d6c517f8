import { createServer } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { keepPorts } from '../../src/local_stack/ports.ts';
import { temporaryFolder } from './data_folder.ts';

describe('ports', () => {
  const folder = temporaryFolder();
  const file = folder.inside('ports.json');

  it('stay the same from start to start, beside those of others', async () => {
    const first = await keepPorts(file, ['one', 'two']);
    expect(first.one).not.toBe(first.two);
    await keepPorts(file, ['three']);
    await expect(keepPorts(file, ['one', 'two'])).resolves.toEqual(first);
  });

  it('are chosen anew where somebody else has taken one', async () => {
    const first = await keepPorts(file, ['one', 'two']);
    const intruder = createServer();
    await new Promise<void>((resolve) => intruder.listen(first.one, '127.0.0.1', resolve));
    const second = await keepPorts(file, ['one', 'two']);
    await new Promise((resolve) => intruder.close(resolve));
    expect(second.one).not.toBe(first.one);
    expect(second.two).toBe(first.two);
    await expect(keepPorts(file, ['one', 'two'])).resolves.toEqual(second);
  });
});
