/* ViennaCL on the first OpenCL device: products, and solvers of a Poisson problem, in two precisions.
 *
 *     viennacl SIDE REPEATS
 *
 * SIDE² are the unknowns, and SIDE the rows of dense matrices. Lines "bits NAME DIGEST" and "result NAME VALUE"
 * are results, "ms NAME VALUE" times. */
#define VIENNACL_WITH_OPENCL
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "viennacl/compressed_matrix.hpp"
#include "viennacl/linalg/bicgstab.hpp"
#include "viennacl/linalg/cg.hpp"
#include "viennacl/linalg/gmres.hpp"
#include "viennacl/linalg/inner_prod.hpp"
#include "viennacl/linalg/norm_2.hpp"
#include "viennacl/linalg/prod.hpp"
#include "viennacl/matrix.hpp"
#include "viennacl/vector.hpp"

template <typename T> static void say(const std::string &name, const std::vector<T> &values)
{
        uint64_t hash = 14695981039346656037u;
        double squares = 0;
        for (T v : values) {
                unsigned char bytes[sizeof(T)];
                memcpy(bytes, &v, sizeof(T));
                for (unsigned char b : bytes)
                        hash = (hash ^ b) * 1099511628211u;
                squares += (double)v * (double)v;
        }
        printf("bits %s %016llx\n", name.c_str(), (unsigned long long)hash);
        printf("result %s, norm %.9g\n", name.c_str(), sqrt(squares));
        fflush(stdout);
}

/* The first call builds kernels and does not count. */
template <typename F> static void timed(const std::string &name, int repeats, F action)
{
        action();
        double best = INFINITY;
        for (int i = 0; i < repeats; i++) {
                viennacl::backend::finish();
                auto begin = std::chrono::steady_clock::now();
                action();
                viennacl::backend::finish();
                std::chrono::duration<double, std::milli> time =
                        std::chrono::steady_clock::now() - begin;
                best = std::fmin(best, time.count());
        }
        printf("ms %s %.6g\n", name.c_str(), best);
        fflush(stdout);
}

template <typename T> static std::vector<T> host(const viennacl::vector<T> &v)
{
        std::vector<T> copy(v.size());
        viennacl::copy(v.begin(), v.end(), copy.begin());
        return copy;
}

static double noise(uint32_t *state)
{
        *state = *state * 1664525u + 1013904223u;
        return *state / 4294967296.0 - 0.5;
}

template <typename T> static void dense(const std::string &kind, unsigned n, int repeats)
{
        uint32_t state = 7919;
        std::vector<std::vector<T>> a(n, std::vector<T>(n));
        std::vector<T> x(n);
        for (auto &row : a)
                for (T &v : row)
                        v = (T)noise(&state);
        for (T &v : x)
                v = (T)noise(&state);
        viennacl::matrix<T> A(n, n), B(n, n);
        viennacl::vector<T> X(n), Y(n);
        viennacl::copy(a, A);
        viennacl::copy(x.begin(), x.end(), X.begin());
        Y = viennacl::linalg::prod(A, X);
        say(kind + ", matrix times vector", host(Y));
        T inner = viennacl::linalg::inner_prod(X, Y);
        printf("result %s, inner product %.9g\n", kind.c_str(), (double)inner);
        timed(kind + ", matrix times matrix", repeats, [&] { B = viennacl::linalg::prod(A, A); });
        Y = viennacl::linalg::prod(B, X);
        say(kind + ", product of matrices times vector", host(Y));
}

template <typename T> static void sparse(const std::string &kind, unsigned side, int repeats)
{
        unsigned n = side * side;
        std::vector<std::map<unsigned, T>> a(n);
        for (unsigned y = 0; y < side; y++)
                for (unsigned x = 0; x < side; x++) {
                        unsigned i = y * side + x;
                        a[i][i] = (T)4.01;
                        if (x > 0)
                                a[i][i - 1] = -1;
                        if (x + 1 < side)
                                a[i][i + 1] = -1;
                        if (y > 0)
                                a[i][i - side] = -1;
                        if (y + 1 < side)
                                a[i][i + side] = -1;
                }
        uint32_t state = 104729;
        std::vector<T> right(n);
        for (T &v : right)
                v = (T)noise(&state);
        viennacl::compressed_matrix<T> A(n, n);
        viennacl::vector<T> R(n), X(n);
        viennacl::copy(a, A);
        viennacl::copy(right.begin(), right.end(), R.begin());
        X = viennacl::linalg::prod(A, R);
        say(kind + ", sparse matrix times vector", host(X));
        double goal = sizeof(T) == 8 ? 1e-10 : 1e-5;
        timed(kind + ", conjugate gradients", repeats,
              [&] { X = viennacl::linalg::solve(A, R, viennacl::linalg::cg_tag(goal, 300)); });
        say(kind + ", conjugate gradients", host(X));
        timed(kind + ", BiCGStab", repeats, [&] {
                X = viennacl::linalg::solve(A, R, viennacl::linalg::bicgstab_tag(goal, 300));
        });
        say(kind + ", BiCGStab", host(X));
        timed(kind + ", GMRES", repeats, [&] {
                X = viennacl::linalg::solve(A, R, viennacl::linalg::gmres_tag(goal, 60, 20));
        });
        say(kind + ", GMRES", host(X));
}

int main(int argc, char **argv)
{
        unsigned side = argc > 1 ? (unsigned)atoi(argv[1]) : 256;
        int repeats = argc > 2 ? atoi(argv[2]) : 3;
        dense<float>("single", side, repeats);
        sparse<float>("single", side, repeats);
        if (viennacl::ocl::current_device().double_support()) {
                dense<double>("double", side, repeats);
                sparse<double>("double", side, repeats);
        }
        return 0;
}
