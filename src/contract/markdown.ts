/** Markdown of what the Temporal UI shows of workflows. */

/** Users choose names, and servers the texts of errors: they must not become links, pictures or HTML. */
export const escapeMarkdown = (text: string): string =>
  text.replace(/\p{C}/gu, ' ').replace(/[\\`*_{}[\]()<>#|~!&]/g, '\\$&');

/** A text as code; `unknown` without one. */
export const codeOf = (text: string | null): string =>
  text === null ? 'unknown' : `\`${text.replaceAll('`', "'")}\``;

/** A fact of a list: its name, and its value in Markdown. */
export type Fact = readonly [name: string, markdown: string];

/** Paragraphs, and a list of facts below them. */
export const toMarkdown = (paragraphs: readonly string[], facts: readonly Fact[]): string =>
  [...paragraphs, facts.map(([name, markdown]) => `- ${name}: ${markdown}`).join('\n')]
    .filter((part) => part !== '')
    .join('\n\n');
