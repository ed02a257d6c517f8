import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
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

  it('are not given to two processes before either listens', async () => {
    const module = join(import.meta.dirname, '../../src/local_stack/ports.ts');
    const other = spawn(
      process.execPath,
      [
        '-e',
        `import(${JSON.stringify(module)}).then(async ({ assignPorts }) => {
           const { one } = await assignPorts(${JSON.stringify(folder.inside('other.json'))}, ['one']);
           console.log(one);
           setInterval(() => {}, 1000);
         })`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [line] = (await once(other.stdout, 'data')) as [Buffer];
    const reserved = Number(line.toString());
    writeFileSync(folder.inside('own.json'), JSON.stringify({ one: reserved }));
    const own = await assignPorts(folder.inside('own.json'), ['one']);
    other.kill();
    await once(other, 'exit');
    const afterwards = await assignPorts(folder.inside('own.json'), ['one']);
    expect(own.one).not.toBe(reserved);
    expect(afterwards).toEqual(own);
  });
});
