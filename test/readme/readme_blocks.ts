import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The README without what precedes its first section. */
const sections = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
  .split(/^## /m)
  .slice(1);

/**
 * The code blocks of a language in a section of README.md, in order.
 * @throws Error when the README has no such section.
 */
export function codeBlocks(heading: string, language: 'sh' | 'sql'): string[] {
  const section = sections.find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`README.md has no section "${heading}".`);
  return [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, found]) => found === language)
    .map(([, , code]) => code ?? '');
}
