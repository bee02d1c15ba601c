// Bundles the extension, its webview and, with --tests, the unit tests, into out/.
import { readdirSync } from "node:fs";
import { build } from "esbuild";

const minify = process.argv.includes("--minify");
/** One copy of the API's names for the whole bundle: each `import * as vscode` would make one, when it starts. */
const once = {
  name: "once",
  setup(build) {
    build.onResolve({ filter: /^vscode$/ }, ({ kind, namespace }) => {
      if (namespace === "once" || kind === "require-call") return { path: "vscode", external: true };
      return { path: "vscode", namespace: "once" };
    });
    build.onLoad({ filter: /^vscode$/, namespace: "once" }, () => ({ contents: 'export * from "vscode"' }));
  },
};
const shared = { bundle: true, minify, sourcemap: !minify, logLevel: "warning" };

if (process.argv.includes("--tests")) {
  await build({
    ...shared,
    entryPoints: readdirSync("test/unit")
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => `test/unit/${name}`),
    outdir: "out/test",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
  });
} else {
  await Promise.all([
    build({
      ...shared,
      entryPoints: ["src/extension.ts"],
      outfile: "out/extension.js",
      platform: "node",
      format: "cjs",
      target: "node20",
      plugins: [once],
    }),
    build({
      ...shared,
      entryPoints: ["src/web.ts"],
      outfile: "out/web.js",
      platform: "browser",
      format: "cjs",
      target: "es2022",
      external: ["vscode"],
    }),
    build({
      ...shared,
      entryPoints: ["webview/main.ts"],
      loader: { ".ttf": "file" },
      outdir: "out/webview",
      platform: "browser",
      format: "iife",
      target: "es2022",
    }),
  ]);
}
