import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/**
 * The code blocks of a language in a section of a README, in order.
 * @throws Error when the file has no such section.
 */
export function codeBlocks(
  heading: string,
  language: 'sh' | 'sql' | 'ts' | 'python',
  file = 'README.md',
): string[] {
  // Without what precedes the first section.
  const sections = readFileSync(join(root, file), 'utf8').split(/^## /m).slice(1);
  const section = sections.find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`${file} has no section "${heading}".`);
  return [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, found]) => found === language)
    .map(([, , code]) => code ?? '');
}
