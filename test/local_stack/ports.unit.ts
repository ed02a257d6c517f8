import { createServer } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { temporaryFolder } from './data_folder.ts';

describe('ports', () => {
  const folder = temporaryFolder();
  const file = folder.inside('ports.json');

  it('stay the same between starts', async () => {
    const first = await assignPorts(file, ['one', 'two']);
    expect(first.one).not.toBe(first.two);
    await assignPorts(file, ['three']);
    await expect(assignPorts(file, ['one', 'two'])).resolves.toEqual(first);
  });

  it('are replaced when another program uses them', async () => {
    const first = await assignPorts(file, ['one', 'two']);
    const otherProgram = createServer();
    await new Promise<void>((resolve) => otherProgram.listen(first.one, '127.0.0.1', resolve));
    const second = await assignPorts(file, ['one', 'two']);
    await new Promise((resolve) => otherProgram.close(resolve));
    expect(second.one).not.toBe(first.one);
    expect(second.two).toBe(first.two);
    await expect(assignPorts(file, ['one', 'two'])).resolves.toEqual(second);
  });
});
