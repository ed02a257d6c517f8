import { mkdtemp, open, rm, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Opens a new file for writing and reading that nobody else can read. It has no name any more, so it is gone when the
 * handle is closed, however the process ends.
 */
export async function openTemporaryFile(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'exportd-verify-'));
  try {
    return await open(join(folder, 'object'), 'wx+', 0o600);
  } finally {
    await rm(folder, { recursive: true });
  }
}
