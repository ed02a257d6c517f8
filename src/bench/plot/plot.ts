import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LaunchError } from '../../local_stack/launch_error.ts';
import { readSavedResult } from '../saved_result.ts';
import { chartsOf } from './charts.ts';

/** The folder of the results and charts of this clone. */
export const figuresFolder = join(import.meta.dirname, '../figures');

/**
 * Draws the saved results of a folder as SVG files beside them.
 * @returns the paths of the charts
 * @throws LaunchError when the folder has no result, or a file that is none
 */
export function plotFigures(folder: string): string[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  if (files.length === 0)
    throw new LaunchError(`${folder} has no saved result. "exportd bench --save <file>" writes one.`);
  const charts = chartsOf(files.map((name) => readSavedResult(join(folder, name))));
  return [...charts].map(([name, chart]) => {
    const file = join(folder, name);
    writeFileSync(file, chart);
    return file;
  });
}
