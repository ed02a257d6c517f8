/** Where the name is that a person is shown by, the first before the others. */
export const displayProperties = [
  'email',
  'Email',
  'name',
  'Name',
  'username',
  'Username',
  'UserName',
] as const;

/** What a person is shown by: a property, else a distinct id, else the id. */
export function displayName(
  properties: Readonly<Record<string, unknown>>,
  distinctIds: readonly string[],
  id: string,
): string {
  for (const name of displayProperties) {
    const value = properties[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
    if (typeof value === 'number') return String(value);
  }
  return distinctIds[0] ?? id;
}
