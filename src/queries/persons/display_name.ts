/** Properties that hold a person's display name, in order of preference. */
export const displayProperties = [
  'email',
  'Email',
  'name',
  'Name',
  'username',
  'Username',
  'UserName',
] as const;

/** A person's display name: a property, else a distinct id, else the person's id. */
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
