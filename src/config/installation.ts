import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Whether this is a build (src/build), which a package has, and not the sources of a clone. */
export const isBuild = import.meta.filename.endsWith('.js');

/** The folder of the build in that of exportd. */
export const buildFolder = 'dist';

/** The folder of exportd: a clone, or an installed package. */
export const root = findRoot(import.meta.dirname);

function findRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : findRoot(dirname(folder));
}

/**
 * A file or folder of exportd by its path in a clone, such as `src/journal/migrations`. A build has the same paths below its
 * folder, and JavaScript in place of TypeScript.
 */
export const installedPath = (path: string): string =>
  isBuild ? join(root, buildFolder, path.replace(/\.ts$/, '.js')) : join(root, path);

/** What starts the local stack, for messages. */
export const startCommand = isBuild ? 'npx exportd up' : 'npm start';
