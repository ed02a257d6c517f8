import type { PlannedExport, PlannedField } from './plan.ts';

const titles: Readonly<Record<PlannedExport['action'], (name: string) => string>> = {
  create: (name) => `+ create ${name}`,
  update: (name) => `~ update ${name}`,
  unchanged: (name) => `  unchanged: ${name}`,
  delete: (name) => `- delete ${name}; its objects stay in the bucket`,
  undeclared: (name) => `  not in the file: ${name}; --prune deletes it`,
};

/** Formats a plan as a diff, with a summary as its last line. */
export function planLines(plan: readonly PlannedExport[]): string[] {
  const lines = plan.flatMap(({ action, name, fields }) => [
    titles[action](name),
    ...fields.map((field) => `    ${fieldLine(action, field)}`),
  ]);
  return [...lines, summaryOf(plan)];
}

function fieldLine(action: PlannedExport['action'], { field, secret, from, to }: PlannedField): string {
  if (secret) return `${field}: ${action === 'create' ? 'set' : 'changed'} (secret)`;
  const target = to === null ? 'default' : JSON.stringify(to);
  return action === 'create' ? `${field}: ${target}` : `${field}: ${JSON.stringify(from)} → ${target}`;
}

function summaryOf(plan: readonly PlannedExport[]): string {
  const count = (action: PlannedExport['action']) => plan.filter((one) => one.action === action).length;
  return `${count('create')} to create, ${count('update')} to update, ${count('delete')} to delete, ${count('unchanged')} unchanged.`;
}
