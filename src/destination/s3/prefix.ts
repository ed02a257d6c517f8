/** The variables of a prefix. They depend on the run only, never on the clock. */
export const prefixVariables = [
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

/** The values of the variables for a run. */
export type PrefixValues = Readonly<Record<PrefixVariable, string>>;

/** Whether a name is a variable. */
export const isVariable = (name: string): name is PrefixVariable =>
  (prefixVariables as readonly string[]).includes(name);

/** Returns why a template is not a valid prefix; null if it is. */
export function prefixProblem(template: string): string | null {
  if (template.startsWith('/')) return `The prefix must not start with "/".`;
  if (/[\p{Cc}\\]/u.test(template)) return 'The prefix must not contain control characters or backslashes.';
  const segments = template.replace(/\/$/, '').split('/');
  if (segments.some((segment) => segment === '..' || segment === '.'))
    return 'The prefix must not contain the path segments "." and "..".';
  if (segments.length > 1 && segments.includes('')) return 'The prefix must not contain "//".';
  for (const [, name] of template.matchAll(/\{([^{}]*)\}/g))
    if (!isVariable(name ?? ''))
      return `The prefix contains the unknown variable {${name}}. Available variables: ${prefixVariables.map((known) => `{${known}}`).join(', ')}.`;
  if (/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, '')))
    return 'The prefix contains an unbalanced brace. Write variables like {year}.';
  return null;
}

/** Renders a validated template without a trailing slash; '' for no prefix. */
export const renderPrefix = (template: string, values: PrefixValues): string =>
  template
    .replaceAll(/\{([^{}]*)\}/g, (text, name: string) => (isVariable(name) ? values[name] : text))
    .replace(/\/$/, '');

/** The path segments before the first variable, which are the same for all intervals. */
export function constantPrefix(template: string): string {
  const segments = template.replace(/\/$/, '').split('/');
  const firstVariable = segments.findIndex((segment) => segment.includes('{'));
  return (firstVariable === -1 ? segments : segments.slice(0, firstVariable)).join('/');
}
