import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LaunchError } from '../../local_stack/launch_error.ts';
import { readSavedResult } from '../saved_result.ts';
import { chartsOf } from './charts.ts';
import { figuresPage } from './figures_page.ts';

/** The folder of the results and charts of this clone. */
export const figuresFolder = join(import.meta.dirname, '../figures');

/**
 * Draws the saved results of a folder as SVG files beside them, and writes a page with the charts and their tables.
 * @returns the paths of the charts and the page
 * @throws LaunchError when the folder has no result, or a file that is none
 */
export function plotFigures(folder: string): string[] {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .toSorted();
  if (files.length === 0)
    throw new LaunchError(`${folder} has no saved result. "exportd bench --save <file>" writes one.`);
  const saved = files.map((name) => readSavedResult(join(folder, name)));
  const charts = chartsOf(saved);
  const written = [...charts, ['README.md', figuresPage(saved, [...charts.keys()])] as const];
  return written.map(([name, content]) => {
    const file = join(folder, name);
    writeFileSync(file, content);
    return file;
  });
}
