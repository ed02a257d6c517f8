import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a private file for writing and reading. Its name is deleted immediately, so the file disappears when the
 * handle is closed or the process ends.
 */
export async function openTemporaryFile(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'exportd-verify-'));
  try {
    return await open(join(folder, 'object'), 'wx+', 0o600);
  } finally {
    await rm(folder, { recursive: true });
  }
}
