/** What a prefix may name, all of it known from the run alone: never from a clock. */
const prefixVariables = [
  'year',
  'month',
  'day',
  'hour',
  'minute',
  'second',
  'data_interval_start',
  'data_interval_end',
  'table',
] as const;
export type PrefixVariable = (typeof prefixVariables)[number];

/** The values of the variables for one run. */
export type PrefixValues = Readonly<Record<PrefixVariable, string>>;

/** Whether a name in braces stands for something. */
export const isVariable = (name: string): name is PrefixVariable =>
  (prefixVariables as readonly string[]).includes(name);

/** Says in a sentence why a template is no good as a prefix; null when it is. */
export function prefixProblem(template: string): string | null {
  if (template.startsWith('/')) return `The prefix must not begin with "/".`;
  if (/[\p{Cc}\\]/u.test(template)) return 'The prefix must not hold control characters or backslashes.';
  const segments = template.replace(/\/$/, '').split('/');
  if (segments.some((segment) => segment === '..' || segment === '.'))
    return 'The prefix must not hold the path segments "." and "..".';
  if (segments.length > 1 && segments.includes('')) return 'The prefix must not hold "//".';
  for (const [, name] of template.matchAll(/\{([^{}]*)\}/g))
    if (!isVariable(name ?? ''))
      return `The prefix names the unknown variable {${name}}; known are ${prefixVariables.map((known) => `{${known}}`).join(', ')}.`;
  if (/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, '')))
    return 'The prefix has a brace without its partner; variables are written like {year}.';
  return null;
}

/** The path that a checked template stands for, without a slash at its end; '' for none. */
export const renderPrefix = (template: string, values: PrefixValues): string =>
  template
    .replaceAll(/\{([^{}]*)\}/g, (text, name: string) => (isVariable(name) ? values[name] : text))
    .replace(/\/$/, '');

/** The path segments before the first one that holds a variable: the same for all intervals. */
export function constantPart(template: string): string {
  const segments = template.replace(/\/$/, '').split('/');
  const firstVariable = segments.findIndex((segment) => segment.includes('{'));
  return (firstVariable === -1 ? segments : segments.slice(0, firstVariable)).join('/');
}
